// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
)

// gate counts operations under way.
type gate struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when n is 0; nil without waiters
}

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// wait returns true when nothing is under way, or false when ctx ends.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return true
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-ctx.Done():
		return false
	}
}
