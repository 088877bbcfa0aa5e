// SPDX-License-Identifier: Apache-2.0

// Package debounce merges notifications of changes that follow closely.
package debounce

import (
	"sync"
	"time"
)

// mergeWithin is how long changes are merged after one was passed on. Servers often
// send several in a row, especially right after connecting.
const mergeWithin = 100 * time.Millisecond

// Debouncer passes on the first change at once, so that later messages on the
// connection find it known, and merges changes that follow closely into one more.
type Debouncer struct {
	passOn func() // must not block

	mu      sync.Mutex
	timer   *time.Timer // non-nil for mergeWithin after a change was passed on
	more    bool        // another change arrived since
	stopped bool
}

// New returns a Debouncer that calls passOn, which must not block, for changes.
func New(passOn func()) *Debouncer { return &Debouncer{passOn: passOn} }

// Note records a change. It does not block.
func (d *Debouncer) Note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.stopped:
	case d.timer != nil:
		d.more = true
	default:
		d.pass()
	}
}

// pass passes a change on and starts merging later ones; d.mu is held.
func (d *Debouncer) pass() {
	d.more = false
	d.timer = time.AfterFunc(mergeWithin, d.gathered)
	d.passOn()
}

func (d *Debouncer) gathered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	if d.more && !d.stopped {
		d.pass()
	}
}

// Stop drops pending changes.
func (d *Debouncer) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}
