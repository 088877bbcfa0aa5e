// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
)

// scheduler serializes work per conversation and limits concurrent turns.
// It holds only the conversations that are in use.
type scheduler struct {
	work     func(t *slot) // runs a conversation
	maxTurns int

	mu      sync.Mutex
	slots   map[string]*slot
	ready   []*slot // waiting for a running turn to end
	running int
	closed  bool
	end     chan struct{} // closed when closed is set
	turns   sync.WaitGroup
}

// slot is a conversation in use. It is held by a method call or by the turn that runs
// it, or it is queued in scheduler.ready. The scheduler's mu guards its fields, except
// tries, which belongs to the holder.
type slot struct {
	id     string
	urgent []chan struct{} // callers that want to cancel it; served before it is run
	queue  []chan struct{} // callers served after it was run
	wake   bool            // it must be run
	tries  tries

	ready  bool            // it is in scheduler.ready and has no holder
	ctx    context.Context // of the turn that holds it, otherwise nil
	cancel context.CancelCauseFunc
}

func newScheduler(most int, work func(*slot)) *scheduler {
	return &scheduler{work: work, maxTurns: most, slots: map[string]*slot{}, end: make(chan struct{})}
}

// acquire waits until a conversation is free and earlier callers were served, and takes
// it.
func (s *scheduler) acquire(ctx context.Context, id string) (*slot, error) {
	s.mu.Lock()
	t, mine, err := s.claim(id)
	if mine != nil {
		t.queue = append(t.queue, mine)
	}
	s.mu.Unlock()
	if mine == nil {
		return t, err
	}
	return t, s.wait(ctx, t, mine)
}

// preempt takes a conversation as soon as it is free, before all turns and all callers in
// the queue, and cancels the turn that holds it.
func (s *scheduler) preempt(ctx context.Context, id string, cause error) (*slot, error) {
	s.mu.Lock()
	t, mine, err := s.claim(id)
	switch {
	case mine == nil:
	case t.ready:
		s.ready = slices.DeleteFunc(s.ready, func(r *slot) bool { return r == t })
		t.ready, t.wake, mine = false, true, nil
	default:
		t.urgent = append(t.urgent, mine)
		if t.cancel != nil {
			t.cancel(cause)
		}
	}
	s.mu.Unlock()
	if mine == nil {
		return t, err
	}
	return t, s.wait(ctx, t, mine)
}

// claim takes a conversation that is free. Otherwise it returns a channel to wait
// on. The caller holds mu.
func (s *scheduler) claim(id string) (t *slot, mine chan struct{}, err error) {
	t = s.slots[id]
	switch {
	case s.closed:
		return nil, nil, ErrClosed
	case t != nil:
		return t, make(chan struct{}), nil
	}
	t = &slot{id: id}
	s.slots[id] = t
	return t, nil, nil
}

// runThenAcquire releases a conversation so that it is run, and then takes it again,
// before all other callers in the queue. If run is false, it is run only if a check is due.
func (s *scheduler) runThenAcquire(ctx context.Context, t *slot, run bool) error {
	mine := make(chan struct{})
	s.mu.Lock()
	t.queue = slices.Insert(t.queue, 0, mine)
	t.wake = t.wake || run
	s.handOver(t)
	s.mu.Unlock()
	return s.wait(ctx, t, mine)
}

// wait waits until the conversation is handed over by closing mine.
func (s *scheduler) wait(ctx context.Context, t *slot, mine chan struct{}) error {
	var err error
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-s.end:
		err = ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(c chan struct{}) bool { return c == mine }
	waiting := len(t.urgent) + len(t.queue)
	t.urgent = slices.DeleteFunc(t.urgent, is)
	t.queue = slices.DeleteFunc(t.queue, is)
	if len(t.urgent)+len(t.queue) == waiting { // handed over at the same moment
		s.handOver(t)
	}
	return err
}

// release releases a conversation; wake says whether it must be run.
func (s *scheduler) release(t *slot, wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wake {
		t.wake, t.tries = true, tries{}
	}
	s.handOver(t)
}

// scheduleAgain has a conversation run whose log has grown, or whose check is due. If a turn
// holds it, it is run again afterwards: that turn may have read the log before.
func (s *scheduler) scheduleAgain(id string, after tries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake(id, after, true)
}

// schedule has a conversation run, unless a turn already holds it.
func (s *scheduler) schedule(id string, after tries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake(id, after, false)
}

// wake schedules a conversation to be run as soon as it is free. If again is set, this
// also applies to one that a turn holds. The caller holds mu.
func (s *scheduler) wake(id string, after tries, again bool) {
	t := s.slots[id]
	switch {
	case s.closed:
	case t == nil:
		t = &slot{id: id, wake: true, tries: after}
		s.slots[id] = t
		s.handOver(t)
	case t.ready:
	case t.cancel == nil || again:
		t.wake = true
	}
}

// handOver hands a conversation without a holder to the next one, or drops it. The caller
// holds mu.
func (s *scheduler) handOver(t *slot) {
	switch {
	case s.closed:
		s.forget(t)
	case len(t.urgent) > 0:
		close(t.urgent[0])
		t.urgent = t.urgent[1:]
	case t.wake && s.running < s.maxTurns:
		s.running++
		s.start(t)
		s.turns.Go(func() { s.runAll(t) })
	case t.wake:
		t.ready = true
		s.ready = append(s.ready, t)
	case len(t.queue) > 0:
		close(t.queue[0])
		t.queue = t.queue[1:]
	default:
		s.forget(t)
	}
}

// forget drops an unused conversation, and frees the maps once they are empty. The
// caller holds mu.
func (s *scheduler) forget(t *slot) {
	delete(s.slots, t.id)
	if len(s.slots) == 0 {
		s.slots, s.ready = map[string]*slot{}, nil
	}
}

// start gives a conversation to a turn. The caller holds mu.
func (s *scheduler) start(t *slot) {
	t.wake, t.ready = false, false
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
}

// runAll works on a conversation, and then on the ready ones.
func (s *scheduler) runAll(t *slot) {
	for t != nil {
		s.work(t)
		t = s.next(t)
	}
}

// next releases a conversation whose turn is over and returns the next ready one, or
// nil. A conversation that must be run again goes to the end of the ready queue.
func (s *scheduler) next(done *slot) (next *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done.cancel(nil)
	done.ctx, done.cancel = nil, nil
	if len(s.ready) > 0 {
		next = s.ready[0]
		s.ready = slices.Delete(s.ready, 0, 1)
		s.start(next)
		s.handOver(done)
		return next
	}
	s.running--
	s.handOver(done)
	return nil
}

// close rejects all further work.
func (s *scheduler) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.ready = true, nil
		close(s.end)
	}
}

// stopAll cancels all running turns.
func (s *scheduler) stopAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.slots {
		if t.cancel != nil {
			t.cancel(cause)
		}
	}
}

// busy reports whether a conversation is in use.
func (s *scheduler) busy(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[id] != nil
}
