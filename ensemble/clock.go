// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"sync"
	"time"

	"github.com/consort-go/consort/invoker"
)

// clock ends a call that takes too long: Options.CallTimeout after its last sign of
// life, and Options.CallLimit after its beginning. Repetitions of the call share it. It
// pauses while it is held.
type clock struct {
	ctx            context.Context // of the call; ends at the time limit
	end            context.CancelCauseFunc
	timeout, limit time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	heard   time.Time // the last sign of life
	due     time.Time // when the limit is reached
	holds   int
	held    time.Time // start of the hold, while holds > 0
	stopped bool
	reports int
	last    invoker.Progress // the newest report
}

// startClock starts a clock for a call; the caller must stop it.
func startClock(ctx context.Context, o *Options) *clock {
	now := time.Now()
	c := &clock{timeout: o.CallTimeout, limit: o.CallLimit, heard: now, due: now.Add(o.CallLimit)}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.mu.Lock() // the timer may fire before it is set
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(min(c.timeout, c.limit), c.check)
	return c
}

// stop ends the call's context and stops the timer.
func (c *clock) stop() {
	c.mu.Lock()
	c.stopped = true
	c.timer.Stop()
	c.mu.Unlock()
	c.end(nil)
}

// check ends the call if its time is up, and otherwise sets the timer again.
func (c *clock) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case c.stopped || c.holds > 0:
	case !now.Before(c.due):
		c.end(&limitError{noAnswer, c.limit})
	case !now.Before(c.heard.Add(c.timeout)):
		c.end(&limitError{noSign, c.timeout})
	default:
		c.timer.Reset(c.left(now))
	}
}

// left returns the time until a limit without a further sign of life; c.mu is held.
func (c *clock) left(now time.Time) time.Duration {
	return min(c.due.Sub(now), c.heard.Add(c.timeout).Sub(now))
}

// touch records a sign of life. The timer takes it into account when it fires.
func (c *clock) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
}

// report records progress.
func (c *clock) report(p invoker.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
	c.reports++
	c.last = p
}

// hold pauses the clock until resume is called, once.
func (c *clock) hold() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 {
		c.held = time.Now()
		c.timer.Stop()
	}
	return c.resume
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds > 0 || c.stopped {
		return
	}
	now := time.Now()
	c.heard = now.Add(-max(0, c.held.Sub(c.heard))) // a sign of life meanwhile counts as one of now
	c.due = c.due.Add(now.Sub(c.held))
	c.timer.Reset(c.left(now))
}

// elapsed returns how long the clock has run.
func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.holds > 0 {
		now = c.held
	}
	return now.Sub(c.due) + c.limit
}

// These texts name the missing event when a limit is reached.
const (
	noAnswer = "no answer"
	noSign   = "no answer and no progress"
)

// maxReport is how much of a report's text a failure repeats, in bytes.
const maxReport = 200
