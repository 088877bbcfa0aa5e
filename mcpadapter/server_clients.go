// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxClients bounds the table of clients.
const maxClients = 4096

// clients is what each client has under way.
type clients struct {
	rate            rate.Limit
	burst, parallel int

	mu sync.Mutex
	of map[string]*clientLoad
}

// clientLoad is the load of one client.
type clientLoad struct {
	rate  *rate.Limiter
	under [aMessage + 1]int // way, of each kind
	seen  time.Time
}

func newClients(o *ServerOptions) *clients {
	c := &clients{rate: rate.Inf, burst: o.Burst, parallel: o.Parallel, of: make(map[string]*clientLoad)}
	if o.Rate > 0 {
		c.rate = rate.Limit(o.Rate)
		c.burst = positive(c.burst, max(1, int(o.Rate)))
	}
	return c
}

// kind is what a request costs its client.
type kind int

const (
	aRequest kind = iota // a place among those under way
	aStream              // the same, apart: it waits for news
	aBody                // the same, apart: it is still being read
	aMessage             // no place: it may be what a call waits for
)

// arrive counts a request of a client against its rate; it says how long the
// client has to wait if there are too many.
func (c *clients) arrive(client string) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load, now := c.load(client), time.Now()
	if load == nil {
		return time.Second
	}
	booked := load.rate.ReserveN(now, 1)
	if wait = booked.DelayFrom(now); wait > 0 {
		booked.CancelAt(now)
	}
	return wait
}

// begin gives a request of a client its place; end is nil if all are taken.
func (c *clients) begin(client string, what kind) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load := c.load(client)
	if load == nil {
		return nil
	}
	count := &load.under[what]
	if *count >= c.parallel && what != aMessage {
		return nil
	}
	*count++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*count--
	}
}

// slotOf bounds the calls of a client that come without an HTTP request each.
func (c *clients) slotOf(client string) func() (release func(), ok bool) {
	return func() (func(), bool) {
		end := c.begin(client, aRequest)
		return end, end != nil
	}
}

// load returns the load of a client; nil if there are too many clients. c.mu is
// held.
func (c *clients) load(client string) *clientLoad {
	load, ok := c.of[client]
	if !ok {
		if len(c.of) >= maxClients && !c.forgetOne() {
			return nil
		}
		load = &clientLoad{rate: rate.NewLimiter(c.rate, c.burst)}
		c.of[client] = load
	}
	load.seen = time.Now()
	return load
}

// forgetOne makes room: of some clients that have nothing under way, the one
// goes that was not seen for longest. To look at all would make each stranger dear.
func (c *clients) forgetOne() bool {
	var oldest string
	var since time.Time
	looked := 0
	for client, load := range c.of { // they come in any order
		if load.under != [aMessage + 1]int{} {
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
