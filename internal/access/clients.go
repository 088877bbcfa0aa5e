// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// most bounds the table of clients.
const most = 4096

// Limits are the limits of each client.
type Limits struct {
	Rate     float64 // requests per second; 0 is unlimited
	Burst    int     // requests at once; default as many as in a second
	Parallel int     // concurrent requests
}

// Clients tracks the requests of each client. All methods may be called concurrently.
type Clients struct {
	mu              sync.Mutex
	rate            rate.Limit
	burst, parallel int
	of              map[string]*load
}

// load is the current use of one client.
type load struct {
	rate  *rate.Limiter
	under [Message + 1]int // requests under way, by kind
	seen  time.Time
}

// New returns a Clients without any requests under way.
func New(limits Limits) *Clients {
	c := &Clients{of: make(map[string]*load)}
	c.SetLimits(limits)
	return c
}

// SetLimits changes the limits, also of clients with requests under way.
func (c *Clients) SetLimits(limits Limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit, burst := rate.Inf, limits.Burst
	if limits.Rate > 0 {
		limit, burst = rate.Limit(limits.Rate), cmp.Or(max(burst, 0), max(1, int(limits.Rate)))
	}
	if c.parallel = limits.Parallel; limit == c.rate && burst == c.burst {
		return
	}
	c.rate, c.burst = limit, burst
	for _, load := range c.of {
		load.rate = rate.NewLimiter(limit, burst)
	}
}

// Kind says which limit a request counts against.
type Kind int

// The kinds of requests.
const (
	Request Kind = iota // counts against Limits.Parallel
	Stream              // counted separately, with the same limit: it waits for notifications
	Body                // counted separately, with the same limit: it is still being read
	Message             // not limited: a call may be waiting for it
)

// Arrive counts a request of a client against its rate. If the rate is exceeded, it
// returns how long the client has to wait, otherwise 0.
func (c *Clients) Arrive(client string) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load, now := c.loadOf(client), time.Now()
	if load == nil {
		return time.Second
	}
	booked := load.rate.ReserveN(now, 1)
	if wait = booked.DelayFrom(now); wait > 0 {
		booked.CancelAt(now)
	}
	return wait
}

// ArriveTogether counts n more requests of a client that came with one which Arrive has counted:
// all of them, or none. If the rate is exceeded, it returns how long the client has to wait before
// it sends all of them again. If they are more than may ever come at once, most is that number;
// otherwise it is 0. A negative n counts as 0.
func (c *Clients) ArriveTogether(client string, n int) (wait time.Duration, most int) {
	n = max(n, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rate != rate.Inf && n+1 > c.burst {
		return 0, c.burst
	}
	load, now := c.loadOf(client), time.Now()
	if load == nil {
		return time.Second, 0
	}
	booked := load.rate.ReserveN(now, n)
	if wait = booked.DelayFrom(now); wait > 0 {
		booked.CancelAt(now)
		again := load.rate.ReserveN(now, n+1)
		wait = again.DelayFrom(now)
		again.CancelAt(now)
	}
	return wait, 0
}

// Begin admits a request of a client; the caller must call end when it ends. end is nil
// if the limit is reached.
func (c *Clients) Begin(client string, what Kind) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load := c.loadOf(client)
	if load == nil {
		return nil
	}
	count := &load.under[what]
	if *count >= c.parallel && what != Message {
		return nil
	}
	*count++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*count--
	}
}

// Slot returns a function that limits calls of a client that have no HTTP request of
// their own.
func (c *Clients) Slot(client string) func() (release func(), ok bool) {
	return func() (func(), bool) {
		end := c.Begin(client, Request)
		return end, end != nil
	}
}

// loadOf returns the load of a client; nil if there are too many clients. The caller
// must hold c.mu.
func (c *Clients) loadOf(client string) *load {
	l, ok := c.of[client]
	if !ok {
		if len(c.of) >= most && !c.forgetOne() {
			return nil
		}
		l = &load{rate: rate.NewLimiter(c.rate, c.burst)}
		c.of[client] = l
	}
	l.seen = time.Now()
	return l
}

// forgetOne removes a client without requests under way: of up to 16 such clients, the
// one seen longest ago. Looking at all of them would make each new client expensive.
func (c *Clients) forgetOne() bool {
	var oldest string
	var since time.Time
	looked := 0
	for client, load := range c.of { // in random order
		if load.under != [Message + 1]int{} {
			continue
		}
		if looked == 0 || load.seen.Before(since) {
			oldest, since = client, load.seen
		}
		if looked++; looked == 16 {
			break
		}
	}
	delete(c.of, oldest)
	return looked > 0
}
