// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
)

// Spawner is an ability that a [Source] may have.
type Spawner interface {
	// Spawns reports whether Open starts a process on this machine, which takes
	// processor time of it until it is ready: then no more are started at a time
	// than Options.Starts allows.
	Spawns() bool
}

// Starts bounds how many ensembles start a process at a time, so that many of them
// do not take the processor from one another until none is ready in time. A start
// begins with [Source].Open and ends when the tools are listed for the first time,
// or when it fails; ConnectTimeout begins with it, and not before. Those that a call
// waits for come first, then those that are Required, then all others, each in the
// order in which they were asked for; every fourth start is the one that has waited
// longest, so that none waits for ever. A Starts may be used concurrently.
type Starts struct {
	limit int

	mu      sync.Mutex
	running int
	count   int      // starts that had to wait and did begin
	waiting []*start // the oldest first
}

// start is one start: waiting, running or over.
type start struct {
	starts *Starts
	begun  chan struct{} // closed when it may begin

	// Guarded by Starts.mu.
	urgency urgency
	state   startState
}

// urgency says who waits for a start.
type urgency int

const (
	forList     urgency = iota // the list of tools
	forRequired                // the list of tools, which is nothing without it
	forCall                    // a call or a request
)

type startState int

const (
	startWaiting startState = iota
	startRunning
	startOver
)

// oldestEvery is how often the oldest start begins, however urgent others are.
const oldestEvery = 4

// NewStarts returns a bound of so many starts at a time; zero or less means twice
// the number of processors that the program may use, which is the bound of
// ensembles that are given none.
func NewStarts(limit int) *Starts {
	if limit <= 0 {
		limit = 2 * runtime.GOMAXPROCS(0)
	}
	return &Starts{limit: limit}
}

// ofProcess is the bound of ensembles that are given none.
var ofProcess = sync.OnceValue(func() *Starts { return NewStarts(0) })

// ask asks for a start. The caller must end it, whether or not it began.
func (s *Starts) ask(u urgency) *start {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &start{starts: s, begun: make(chan struct{}), urgency: u}
	s.waiting = append(s.waiting, one)
	s.next()
	return one
}

// next lets those begin that there is room for; s.mu is held.
func (s *Starts) next() {
	for s.running < s.limit && len(s.waiting) > 0 {
		s.count++
		at := 0
		for i, one := range s.waiting {
			if s.count%oldestEvery != 0 && one.urgency > s.waiting[at].urgency {
				at = i
			}
		}
		one := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		one.state = startRunning
		s.running++
		close(one.begun)
	}
}

// raise makes a start that waits as urgent as u. It does nothing for a nil one.
func (one *start) raise(u urgency) {
	if one == nil {
		return
	}
	one.starts.mu.Lock()
	defer one.starts.mu.Unlock()
	one.urgency = max(one.urgency, u)
}

// hasBegun reports whether the start may begin, or is over.
func (one *start) hasBegun() bool {
	select {
	case <-one.begun:
		return true
	default:
		return false
	}
}

// end ends the start, once. It does nothing for a nil one.
func (one *start) end() {
	if one == nil {
		return
	}
	s := one.starts
	s.mu.Lock()
	defer s.mu.Unlock()
	switch one.state {
	case startWaiting:
		s.waiting = slices.DeleteFunc(s.waiting, func(other *start) bool { return other == one })
	case startRunning:
		s.running--
	}
	one.state = startOver
	s.next()
}

// awaitStart waits until the connection before this one is gone, and until the
// source may start its process. The time-out of the attempt has not begun: the
// caller must end the start, which may be nil.
func (e *Ensemble) awaitStart(l, previous *life) (*start, error) {
	if err := e.awaitGone(l, previous); err != nil {
		return nil, err
	}
	spawner, ok := e.source.(Spawner)
	if !ok || !spawner.Spawns() {
		return nil, nil
	}
	starts := cmp.Or(e.options.Starts, ofProcess())
	e.mu.Lock()
	l.start = starts.ask(l.urgency)
	if !l.start.hasBegun() && e.current == l {
		e.enter(Queued)
	}
	e.mu.Unlock()
	select {
	case <-l.start.begun:
	case <-l.alive.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == l {
		e.enter(Connecting)
	}
	return l.start, l.ended
}

// want says who waits for a life that is not open yet; e.mu is held.
func (e *Ensemble) want(l *life, u urgency) {
	if e.options.Required {
		u = max(u, forRequired)
	}
	l.urgency = max(l.urgency, u)
	l.start.raise(l.urgency)
}
