// SPDX-License-Identifier: Apache-2.0

// Package backoff remembers failures, and when the next attempt is due.
package backoff

import "time"

// The bounds of how long a failure is reported instead of trying again.
const (
	First = time.Second
	Last  = 30 * time.Second
)

// Backoff remembers consecutive failures. The zero value has none.
type Backoff struct {
	Err   error     // of the last one; nil after a success
	Until time.Time // when the next attempt is due
	wait  time.Duration
}

// Due reports whether the next attempt is due.
func (b *Backoff) Due() bool { return b.Err == nil || !time.Now().Before(b.Until) }

// Add records a failure. Each further one is reported twice as long.
func (b *Backoff) Add(err error) {
	b.Err = err
	b.wait = min(max(First, 2*b.wait), Last)
	b.Until = time.Now().Add(b.wait)
}

// Repeat records the failure of an attempt that no use has caused: the next use does not wait
// longer for it.
func (b *Backoff) Repeat(err error) {
	b.Err = err
	if now := time.Now(); now.After(b.Until) {
		b.Until = now
	}
}
