// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// maxBacklog bounds what waits to be shown, in bytes.
const maxBacklog = 256 << 10

// backlog holds the items that wait to be shown, in order. Its methods may be called concurrently.
type backlog struct {
	mu     sync.Mutex
	room   *sync.Cond // signals that items were taken
	items  []sized
	size   int
	ending bool // the item leaving was put
	closed bool
	fresh  chan struct{} // holds a value while there may be items; closed at the end
}

// sized is an item and its approximate size in bytes.
type sized struct {
	item any
	size int
}

func newBacklog() *backlog {
	b := &backlog{fresh: make(chan struct{}, 1)}
	b.room = sync.NewCond(&b.mu)
	return b
}

// put adds an item, and waits while the backlog is full. It reports false if the backlog
// is closed.
func (b *backlog) put(item any, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size > maxBacklog && !b.closed {
		b.room.Wait()
	}
	if b.closed {
		return false
	}
	b.items = append(b.items, sized{item, size})
	b.size += size
	b.wake()
	return true
}

// leave adds the last item, without waiting for room.
func (b *backlog) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.ending = true
	b.items = append(b.items, sized{item: leaving{}})
	b.wake()
}

// isEnding reports whether leave was called.
func (b *backlog) isEnding() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ending
}

// wake signals that there are items; b.mu is held.
func (b *backlog) wake() {
	select {
	case b.fresh <- struct{}{}:
	default:
	}
}

// take removes items of about the given size in total from the front.
func (b *backlog) take(most int) []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []any
	for len(b.items) > 0 && most >= 0 {
		taken = append(taken, b.items[0].item)
		most -= b.items[0].size
		b.size -= b.items[0].size
		b.items[0] = sized{}
		b.items = b.items[1:]
	}
	if len(b.items) > 0 && !b.closed {
		b.wake()
	}
	b.room.Broadcast()
	return taken
}

// close makes put fail from now on.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.fresh)
	}
	b.room.Broadcast()
}

// listen waits for items.
func (b *backlog) listen() tea.Msg {
	if _, open := <-b.fresh; !open {
		return nil
	}
	return arrived{}
}
