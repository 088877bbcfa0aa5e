// SPDX-License-Identifier: Apache-2.0

// Package shared counts the holders of something that is released after its last use.
package shared

import "sync"

// Thing is something that several holders use. Its methods may be called concurrently. Those
// of a nil Thing do nothing.
type Thing struct {
	release func()

	mu      sync.Mutex
	holders int
}

// New returns a thing with one holder. release is called when it has none.
func New(release func()) *Thing { return &Thing{release: release, holders: 1} }

// Hold adds a holder. It returns false if the thing was released.
func (t *Thing) Hold() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holders == 0 {
		return false
	}
	t.holders++
	return true
}

// Release removes a holder.
func (t *Thing) Release() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.holders--
	last := t.holders == 0
	t.mu.Unlock()
	if last {
		t.release()
	}
}
