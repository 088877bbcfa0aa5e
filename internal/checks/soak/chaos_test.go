// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/consort-go/consort/ensemble"
)

// deeds counts the faults of the servers, and how long they took to recover.
type deeds struct {
	mu                               sync.Mutex
	kills, freezes, restarts, parked int
	recoveries                       []time.Duration
	errs                             []error
}

func (d *deeds) note(count *int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*count++
}

// recovered records a recovery or its failure.
func (d *deeds) recovered(took time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.errs = append(d.errs, err)
		return
	}
	d.recoveries = append(d.recoveries, took)
}

// percentile of the recoveries, by the nearest rank.
func (d *deeds) percentile(p int) time.Duration {
	if len(d.recoveries) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.recoveries))
	return sorted[(len(sorted)*p+99)/100-1]
}

// chaos does something to one server again and again, until ctx ends. It lets
// the server come back in between.
type chaos struct {
	*server
	*deeds
	random *rand.Rand
}

func (c *chaos) run(ctx context.Context) {
	for pause(ctx, c.between(200*time.Millisecond, 2*time.Second)) {
		switch n := c.random.IntN(10); {
		case n < 4:
			c.kill(ctx, syscall.SIGKILL, &c.kills)
		case n < 7:
			c.freeze(ctx)
		case n < 8:
			c.kill(ctx, syscall.SIGTERM, &c.restarts)
		default:
			c.reconnect(ctx)
		}
	}
}

func (c *chaos) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// kill ends the process with a signal. That of a server over HTTP is started
// again after a while, at the same address.
func (c *chaos) kill(ctx context.Context, signal syscall.Signal, count *int) {
	down := c.between(0, 400*time.Millisecond)
	before, struck := c.ensemble.Snapshot(), time.Now()
	if !send(c.mark, signal) {
		return // it is being restarted, or was disconnected because it was idle
	}
	c.note(count)
	if c.addr != "" {
		c.stop()
		pause(ctx, down)
		if err := c.launch(); err != nil {
			c.recovered(0, err)
			return
		}
	}
	c.await(ctx, struck, "after "+signal.String(), func(s ensemble.Snapshot) bool { return s.Since.After(before.Since) })
}

// freeze stops the process for a while, which is longer or shorter than what
// waits for it has patience. Some do not survive it.
func (c *chaos) freeze(ctx context.Context) {
	long := c.between(100*time.Millisecond, 5*time.Second)
	process := grip(c.mark)
	if process == nil {
		return
	}
	defer process.Release()
	if process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	c.note(&c.freezes)
	pause(ctx, long)
	_ = process.Signal(syscall.SIGCONT) // unless it was killed
	thawed := time.Now()
	c.await(ctx, thawed, "after a freeze", func(s ensemble.Snapshot) bool { return s.LastSuccess.After(thawed) })
}

// reconnect has the ensemble end the connection, and make another.
func (c *chaos) reconnect(ctx context.Context) {
	struck := time.Now()
	c.note(&c.restarts)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := c.ensemble.Disconnect(bounded)
	if err == nil {
		err = c.ensemble.Connect(bounded)
	}
	if err != nil {
		err = fmt.Errorf("%s: reconnecting by hand: %w", c.name, err)
	}
	c.recovered(time.Since(struck), err)
}

// await waits until the ensemble is ready again, and revives a parked one. It gives up
// when the soak is over, or after the time in which every server must recover.
func (c *chaos) await(ctx context.Context, since time.Time, what string, back func(ensemble.Snapshot) bool) {
	limit := time.Now().Add(patience / 2)
	for {
		s := c.ensemble.Snapshot()
		switch {
		case s.State == ensemble.Ready && back(s):
			c.recovered(time.Since(since), nil)
			return
		case s.State == ensemble.Parked:
			c.note(&c.parked)
			_ = c.ensemble.Connect(ctx) // its failure shows in the state
		case time.Now().After(limit):
			c.recovered(0, fmt.Errorf("%s did not come back %s: %s, %v", c.name, what, s.State, s.LastError))
			return
		}
		if !pause(ctx, 2*time.Millisecond) {
			return
		}
	}
}

// pause waits, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
