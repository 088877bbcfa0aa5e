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
	aMessage             // no place: it may be what a call waits for
)

// begin lets a request of a client begin, or says when it may try again.
func (c *clients) begin(client string, what kind) (end func(), wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	load, ok := c.of[client]
	if !ok {
		if len(c.of) >= maxClients && !c.forgetOne() {
			return nil, time.Second
		}
		load = &clientLoad{rate: rate.NewLimiter(c.rate, c.burst)}
		c.of[client] = load
	}
	load.seen = now
	count := &load.under[what]
	if *count >= c.parallel && what != aMessage {
		return nil, time.Second
	}
	if booked := load.rate.ReserveN(now, 1); booked.DelayFrom(now) > 0 {
		wait := booked.DelayFrom(now)
		booked.CancelAt(now)
		return nil, wait
	}
	*count++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*count--
	}, 0
}

// forgetOne makes room: the client goes that was not seen for longest, of those
// that have nothing under way.
func (c *clients) forgetOne() bool {
	var oldest string
	var since time.Time
	for client, load := range c.of {
		if load.under == [aMessage + 1]int{} && (oldest == "" || load.seen.Before(since)) {
			oldest, since = client, load.seen
		}
	}
	delete(c.of, oldest)
	return oldest != ""
}
