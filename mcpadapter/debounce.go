// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"
)

// mergeWithin is how long changes are merged after one was passed on. Servers often
// send several in a row, especially right after connecting.
const mergeWithin = 100 * time.Millisecond

// debouncer passes on the first change at once, so that later messages on the
// connection find it known, and merges changes that follow closely into one more.
type debouncer struct {
	passOn func() // must not block

	mu      sync.Mutex
	timer   *time.Timer // non-nil for mergeWithin after a change was passed on
	more    bool        // another change arrived since
	stopped bool
}

func newDebouncer(passOn func()) *debouncer { return &debouncer{passOn: passOn} }

// note records a change. It does not block.
func (d *debouncer) note() {
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
func (d *debouncer) pass() {
	d.more = false
	d.timer = time.AfterFunc(mergeWithin, d.gathered)
	d.passOn()
}

func (d *debouncer) gathered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	if d.more && !d.stopped {
		d.pass()
	}
}

// stop drops pending changes.
func (d *debouncer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}
