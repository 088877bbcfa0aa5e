// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"
)

// mergeWithin is how long further changes are gathered after one that was
// passed on: servers send several in a row, right after connecting above all.
const mergeWithin = 100 * time.Millisecond

// debouncer passes the first change on at once, so that what follows it on the
// connection finds it known, and merges those that follow closely into one more.
type debouncer struct {
	passOn func() // does not wait

	mu      sync.Mutex
	timer   *time.Timer // nil unless a change was passed on just before
	more    bool        // there was another since
	stopped bool
}

func newDebouncer(passOn func()) *debouncer { return &debouncer{passOn: passOn} }

// note takes a change. It does not wait.
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

// pass passes a change on and gathers those that follow; d.mu is held.
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

// stop drops what waits.
func (d *debouncer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}
