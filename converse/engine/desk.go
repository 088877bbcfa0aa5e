// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
)

// desk is a scheduler: it serializes work per conversation and limits concurrent turns.
// It holds only the conversations that are in use.
type desk struct {
	work func(t *talk) // runs a conversation
	most int

	mu      sync.Mutex
	talks   map[string]*talk
	ready   []*talk // waiting for a running turn to end
	working int
	closed  bool
	end     chan struct{} // closed when closed is set
	turns   sync.WaitGroup
}

// talk is a conversation in use. It is held by a method call or by the turn that runs
// it, or it is queued in desk.ready. The desk's mu guards its fields, except tries,
// which belongs to the holder.
type talk struct {
	id     string
	urgent []chan struct{} // callers that want to cancel it; served before it is run
	queue  []chan struct{} // callers served after it was run
	wake   bool            // it must be run
	tries  tries

	ready  bool            // it is in desk.ready and has no holder
	ctx    context.Context // of the turn that holds it, otherwise nil
	cancel context.CancelCauseFunc
}

func newDesk(most int, work func(*talk)) *desk {
	return &desk{work: work, most: most, talks: map[string]*talk{}, end: make(chan struct{})}
}

// take acquires a conversation after it becomes free and earlier callers were served.
func (d *desk) take(ctx context.Context, id string) (*talk, error) {
	d.mu.Lock()
	t, mine, err := d.claim(id)
	if mine != nil {
		t.queue = append(t.queue, mine)
	}
	d.mu.Unlock()
	if mine == nil {
		return t, err
	}
	return t, d.wait(ctx, t, mine)
}

// seize acquires a conversation as soon as it is free, before all turns and all callers
// in the queue, and cancels the turn that holds it.
func (d *desk) seize(ctx context.Context, id string, cause error) (*talk, error) {
	d.mu.Lock()
	t, mine, err := d.claim(id)
	switch {
	case mine == nil:
	case t.ready:
		d.ready = slices.DeleteFunc(d.ready, func(r *talk) bool { return r == t })
		t.ready, t.wake, mine = false, true, nil
	default:
		t.urgent = append(t.urgent, mine)
		if t.cancel != nil {
			t.cancel(cause)
		}
	}
	d.mu.Unlock()
	if mine == nil {
		return t, err
	}
	return t, d.wait(ctx, t, mine)
}

// claim acquires a conversation that is free. Otherwise it returns a channel to wait
// on. The caller holds mu.
func (d *desk) claim(id string) (t *talk, mine chan struct{}, err error) {
	t = d.talks[id]
	switch {
	case d.closed:
		return nil, nil, ErrClosed
	case t != nil:
		return t, make(chan struct{}), nil
	}
	t = &talk{id: id}
	d.talks[id] = t
	return t, nil, nil
}

// again releases a conversation so that it is run, and then acquires it again, before
// all other callers in the queue.
func (d *desk) again(ctx context.Context, t *talk) error {
	mine := make(chan struct{})
	d.mu.Lock()
	t.queue = slices.Insert(t.queue, 0, mine)
	t.wake, t.tries = true, tries{}
	d.pass(t)
	d.mu.Unlock()
	return d.wait(ctx, t, mine)
}

// wait waits until the conversation is handed over by closing mine.
func (d *desk) wait(ctx context.Context, t *talk, mine chan struct{}) error {
	var err error
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-d.end:
		err = ErrClosed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	is := func(c chan struct{}) bool { return c == mine }
	waiting := len(t.urgent) + len(t.queue)
	t.urgent = slices.DeleteFunc(t.urgent, is)
	t.queue = slices.DeleteFunc(t.queue, is)
	if len(t.urgent)+len(t.queue) == waiting { // handed over at the same moment
		d.pass(t)
	}
	return err
}

// give releases a conversation; wake says whether it must be run.
func (d *desk) give(t *talk, wake bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wake {
		t.wake, t.tries = true, tries{}
	}
	d.pass(t)
}

// news schedules a conversation whose log has grown.
func (d *desk) news(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake(id, tries{}, true)
}

// check schedules a conversation unless a turn already holds it.
func (d *desk) check(id string, after tries) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake(id, after, false)
}

// wake schedules a conversation to be run as soon as it is free. If again is set, this
// also applies to one that a turn holds. The caller holds mu.
func (d *desk) wake(id string, after tries, again bool) {
	t := d.talks[id]
	switch {
	case d.closed:
	case t == nil:
		t = &talk{id: id, wake: true, tries: after}
		d.talks[id] = t
		d.pass(t)
	case t.ready:
	case t.cancel == nil || again:
		t.wake = true
	}
}

// pass hands a conversation without a holder to the next one, or drops it. The caller
// holds mu.
func (d *desk) pass(t *talk) {
	switch {
	case d.closed:
		d.forget(t)
	case len(t.urgent) > 0:
		close(t.urgent[0])
		t.urgent = t.urgent[1:]
	case t.wake && d.working < d.most:
		d.working++
		d.start(t)
		d.turns.Go(func() { d.carryOn(t) })
	case t.wake:
		t.ready = true
		d.ready = append(d.ready, t)
	case len(t.queue) > 0:
		close(t.queue[0])
		t.queue = t.queue[1:]
	default:
		d.forget(t)
	}
}

// forget drops an unused conversation, and frees the maps once they are empty. The
// caller holds mu.
func (d *desk) forget(t *talk) {
	delete(d.talks, t.id)
	if len(d.talks) == 0 {
		d.talks, d.ready = map[string]*talk{}, nil
	}
}

// start gives a conversation to a turn. The caller holds mu.
func (d *desk) start(t *talk) {
	t.wake, t.ready = false, false
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
}

// carryOn works on a conversation, and then on the ready ones.
func (d *desk) carryOn(t *talk) {
	for t != nil {
		d.work(t)
		t = d.next(t)
	}
}

// next releases a conversation whose turn is over and returns the next ready one, or
// nil. A conversation that must be run again goes to the end of the ready queue.
func (d *desk) next(done *talk) (next *talk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	done.cancel(nil)
	done.ctx, done.cancel = nil, nil
	if len(d.ready) > 0 {
		next = d.ready[0]
		d.ready = slices.Delete(d.ready, 0, 1)
		d.start(next)
		d.pass(done)
		return next
	}
	d.working--
	d.pass(done)
	return nil
}

// close rejects all further work.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed, d.ready = true, nil
		close(d.end)
	}
}

// stopAll cancels all running turns.
func (d *desk) stopAll(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.talks {
		if t.cancel != nil {
			t.cancel(cause)
		}
	}
}

// busy reports whether a conversation is in use.
func (d *desk) busy(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.talks[id] != nil
}
