// SPDX-License-Identifier: Apache-2.0

// Package outage remembers for how long a model that was unavailable is asked after the
// others.
package outage

import (
	"sync"
	"time"
)

// How long an outage lasts, at least and at most.
const (
	shortest = time.Minute
	longest  = 15 * time.Minute
)

// Outage records when a model was unavailable. Its zero value is a model that was not. It
// is safe for concurrent use.
type Outage struct {
	mu     sync.Mutex
	until  time.Time
	length time.Duration // of the latest outage; 0 if the model has answered since
}

// Lasts reports whether the model was unavailable a short time ago.
func (o *Outage) Lasts(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Before(o.until)
}

// Begin begins an outage of twice the length of the previous one, unless there is one
// already: conversations that fail at the same time count once.
func (o *Outage) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); !now.Before(o.until) {
		o.length = min(max(2*o.length, shortest), longest)
		o.until = now.Add(o.length)
	}
}

// End ends the outage, because the model has answered.
func (o *Outage) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until, o.length = time.Time{}, 0
}
