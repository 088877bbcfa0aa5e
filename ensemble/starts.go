// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
)

// Spawner is an optional interface of a [Source].
type Spawner interface {
	// Spawns reports whether Open starts a process on this machine, which uses
	// processor time until it is ready. Options.Starts then limits how many start at
	// the same time.
	Spawns() bool
}

// Starts bounds how many ensembles start a process at a time, so that many starting
// processes do not compete for the processor until none is ready in time. A start
// begins with [Source].Open and ends when the tools are listed for the first time, or
// when it fails; ConnectTimeout begins with the start, and not before. Starts that a
// call waits for come first, then starts of ensembles that are Required, then all
// others, each group in the order of requests. Every fourth start is the one that has
// waited longest, so that every start gets its turn. A Starts may be used concurrently, and must not be
// copied.
type Starts struct {
	// Limit is how many processes start at a time. Zero or less means twice the number
	// of processors that the program may use, which is the default for ensembles.
	Limit int

	mu      sync.Mutex
	running int
	count   int      // starts that have begun
	waiting []*start // the oldest first
}

// start is one start: waiting, running or over.
type start struct {
	starts *Starts
	begun  chan struct{} // closed when it may begin

	// Guarded by Starts.mu.
	urgency urgency
	over    bool
}

// urgency is the priority of a start, given by its most urgent use.
type urgency int

const (
	forList     urgency = iota // the list of tools
	forRequired                // the list of tools of a required ensemble
	forCall                    // a call or a request
)

// oldestEvery is how often the oldest start begins, however urgent others are.
const oldestEvery = 4

// ofProcess is the bound shared by ensembles without one of their own.
var ofProcess Starts

// most returns how many starts there may be at a time.
func (s *Starts) most() int {
	if s.Limit <= 0 {
		return 2 * runtime.GOMAXPROCS(0)
	}
	return s.Limit
}

// request adds a start. The caller must end it, whether or not it began.
func (s *Starts) request(u urgency) *start {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &start{starts: s, begun: make(chan struct{}), urgency: u}
	s.waiting = append(s.waiting, one)
	s.next()
	return one
}

// next lets waiting starts begin up to the limit; s.mu is held.
func (s *Starts) next() {
	for s.running < s.most() && len(s.waiting) > 0 {
		s.count++
		at := 0
		for i, one := range s.waiting {
			if s.count%oldestEvery != 0 && one.urgency > s.waiting[at].urgency {
				at = i
			}
		}
		one := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.running++
		close(one.begun)
	}
}

// raise makes a waiting start at least as urgent as u. It does nothing for a nil start.
func (one *start) raise(u urgency) {
	if one == nil {
		return
	}
	one.starts.mu.Lock()
	defer one.starts.mu.Unlock()
	one.urgency = max(one.urgency, u)
}

// hasBegun reports whether the start has been allowed to begin.
func (one *start) hasBegun() bool { return isClosed(one.begun) }

// end ends the start, once. It does nothing for a nil start.
func (one *start) end() {
	if one == nil {
		return
	}
	s := one.starts
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case one.over:
	case one.hasBegun():
		s.running--
	default:
		s.waiting = slices.DeleteFunc(s.waiting, func(other *start) bool { return other == one })
	}
	one.over = true
	s.next()
}

// awaitStart waits until the previous session is gone, and until the source may start
// its process. The timeout of the attempt has not begun yet. The caller must end the
// start, which may be nil.
func (s *session) awaitStart(previous *session) (*start, error) {
	if err := s.awaitGone(previous); err != nil {
		return nil, err
	}
	e := s.ensemble
	spawner, ok := e.source.(Spawner)
	if !ok || !spawner.Spawns() {
		return nil, nil
	}
	starts := cmp.Or(e.options.Starts, &ofProcess)
	e.mu.Lock()
	s.start = starts.request(s.urgency)
	if !s.start.hasBegun() && e.supervisor.current == s {
		e.supervisor.enter(Queued)
	}
	e.mu.Unlock()
	select {
	case <-s.start.begun:
	case <-s.alive.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.supervisor.current == s {
		e.supervisor.enter(Connecting)
	}
	return s.start, s.ended
}

// raise records the urgency of a use that waits for the session to open; Ensemble.mu is
// held.
func (s *session) raise(u urgency) {
	if s.ensemble.options.Required {
		u = max(u, forRequired)
	}
	s.urgency = max(s.urgency, u)
	s.start.raise(s.urgency)
}
