// SPDX-License-Identifier: Apache-2.0

package openstreams

import "sync"

// DefaultPerOwner is how many streams of one owner may be open at once by default.
const DefaultPerOwner = 64

// PerOwner bounds the streams of each owner that are open at once. The zero value is ready for use.
// Its methods may be called concurrently.
type PerOwner struct {
	// Most is the bound; default [DefaultPerOwner]. It must be set before the first stream.
	Most int

	mu   sync.Mutex
	open map[string]int
}

// Open counts a stream of an owner until the caller calls end. ok is false, and end nil, if the
// owner has too many.
func (p *PerOwner) Open(owner string) (end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[owner] >= p.most() {
		return nil, false
	}
	if p.open == nil {
		p.open = map[string]int{}
	}
	p.open[owner]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[owner]--; p.open[owner] == 0 {
			delete(p.open, owner)
		}
	}, true
}

func (p *PerOwner) most() int {
	if p.Most > 0 {
		return p.Most
	}
	return DefaultPerOwner
}
