// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// most bounds the table of clients.
const most = 4096

// Limits are those of each client.
type Limits struct {
	Rate     float64 // requests in a second; 0 is no limit
	Burst    int     // at once; default as many as in a second
	Parallel int     // under way
}

// Clients is what each client has under way. All methods may be called
// concurrently.
type Clients struct {
	rate            rate.Limit
	burst, parallel int

	mu sync.Mutex
	of map[string]*load
}

// load is the load of one client.
type load struct {
	rate  *rate.Limiter
	under [Message + 1]int // way, of each kind
	seen  time.Time
}

// New returns a table in which nobody has anything under way.
func New(limits Limits) *Clients {
	c := &Clients{rate: rate.Inf, burst: limits.Burst, parallel: limits.Parallel, of: make(map[string]*load)}
	if limits.Rate > 0 {
		c.rate = rate.Limit(limits.Rate)
		c.burst = cmp.Or(max(c.burst, 0), max(1, int(limits.Rate)))
	}
	return c
}

// Kind is what a request costs its client.
type Kind int

// The kinds of requests.
const (
	Request Kind = iota // a place among those under way
	Stream              // the same, apart: it waits for news
	Body                // the same, apart: it is still being read
	Message             // no place: it may be what a call waits for
)

// Arrive counts a request of a client against its rate; it says how long the
// client has to wait if there are too many.
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

// Begin gives a request of a client its place; end is nil if all are taken.
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

// Slot bounds the calls of a client that come without an HTTP request each.
func (c *Clients) Slot(client string) func() (release func(), ok bool) {
	return func() (func(), bool) {
		end := c.Begin(client, Request)
		return end, end != nil
	}
}

// loadOf returns the load of a client; nil if there are too many clients. c.mu is
// held.
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

// forgetOne makes room: of some clients that have nothing under way, the one
// goes that was not seen for longest. To look at all would make each stranger dear.
func (c *Clients) forgetOne() bool {
	var oldest string
	var since time.Time
	looked := 0
	for client, load := range c.of { // they come in any order
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
