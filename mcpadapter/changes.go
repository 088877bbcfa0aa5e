// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"
)

// mergeWithin is how long changes are gathered before they are passed on:
// servers send several in a row, right after connecting above all.
const mergeWithin = 100 * time.Millisecond

// debouncer merges changes that follow one another closely.
type debouncer struct {
	passOn func() // does not wait

	mu      sync.Mutex
	timer   *time.Timer // nil while no change waits
	stopped bool
}

func newDebouncer(passOn func()) *debouncer { return &debouncer{passOn: passOn} }

// note takes a change. It does not wait.
func (d *debouncer) note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || d.timer != nil {
		return
	}
	d.timer = time.AfterFunc(mergeWithin, d.pass)
}

func (d *debouncer) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	if !d.stopped {
		d.passOn()
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
