// SPDX-License-Identifier: Apache-2.0

package ensemble

import "time"

// The bounds of how long a failure is reported instead of trying again.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// backoff remembers consecutive failures.
type backoff struct {
	err   error // of the last one; nil after a success
	wait  time.Duration
	until time.Time
}

// due reports whether the next attempt is due.
func (b *backoff) due() bool { return b.err == nil || !time.Now().Before(b.until) }

// later returns the last failure with the time of the next attempt.
func (b *backoff) later() error { return &laterError{b.err, b.until} }

// add records a failure.
func (b *backoff) add(err error) {
	b.err = err
	b.wait = min(max(firstBackoff, 2*b.wait), lastBackoff)
	b.until = time.Now().Add(b.wait)
}
