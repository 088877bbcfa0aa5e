// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync"
)

// desk sees to it that a conversation is in one hand at a time, and that no more
// than so many turns are at work. It knows only conversations with which
// somebody has something to do just now.
type desk struct {
	work func(t *talk) // carries a conversation on
	most int

	mu      sync.Mutex
	talks   map[string]*talk
	ready   []*talk // that are to be carried on when a turn ends
	working int
	closed  bool
	end     chan struct{} // closed with it
	turns   sync.WaitGroup
}

// talk is a conversation that is in somebody's hand: of one who called a method,
// or of the turn that carries it on; or it waits for its turn among the ready.
// Its fields are those of the desk's mu, apart from tries, which are the holder's.
type talk struct {
	id     string
	urgent []chan struct{} // who wants to cancel it, before it is carried on
	queue  []chan struct{} // who wants it after that
	wake   bool            // it is to be carried on
	tries  tries

	ready  bool            // it is among the ready, and in nobody's hand
	ctx    context.Context // of the turn that has it, if one has
	cancel context.CancelCauseFunc
}

func newDesk(most int, work func(*talk)) *desk {
	return &desk{work: work, most: most, talks: map[string]*talk{}, end: make(chan struct{})}
}

// take takes a conversation when it is free and those are served that wanted it
// before.
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

// seize takes a conversation as soon as nobody holds it, before all turns and all
// who wait in the queue, and cancels the turn that has it.
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

// claim takes a conversation that is in nobody's hand. Otherwise it returns what
// to wait with. The caller holds mu.
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

// again gives a conversation back to be carried on, and takes it after that,
// before all others that wait for it.
func (d *desk) again(ctx context.Context, t *talk) error {
	mine := make(chan struct{})
	d.mu.Lock()
	t.queue = slices.Insert(t.queue, 0, mine)
	t.wake, t.tries = true, tries{}
	d.pass(t)
	d.mu.Unlock()
	return d.wait(ctx, t, mine)
}

// wait waits until a conversation is given to who holds the other end of mine.
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
	if len(t.urgent)+len(t.queue) == waiting { // it was given at the same moment
		d.pass(t)
	}
	return err
}

// give gives a conversation back, to be carried on or not.
func (d *desk) give(t *talk, wake bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wake {
		t.wake, t.tries = true, tries{}
	}
	d.pass(t)
}

// news has a conversation carried on whose log has grown.
func (d *desk) news(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake(id, tries{}, true)
}

// check has a conversation carried on, if no turn has it already.
func (d *desk) check(id string, after tries) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake(id, after, false)
}

// wake has a conversation carried on as soon as it is free; again says that this is
// also for one that a turn has. The caller holds mu.
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

// pass hands a conversation on, which nobody holds now, or forgets it. The caller
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

// forget lets go of a conversation that nobody has anything to do with, and of the
// room that many of them took. The caller holds mu.
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

// carryOn works on a conversation, and then on those that are ready.
func (d *desk) carryOn(t *talk) {
	for t != nil {
		d.work(t)
		t = d.next(t)
	}
}

// next gives back a conversation whose turn is over, and takes the next that is
// ready; nil if there is none. What is to be carried on again waits behind those
// that are ready.
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

// close lets nothing more begin.
func (d *desk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed, d.ready = true, nil
		close(d.end)
	}
}

// stopAll cancels every turn at work.
func (d *desk) stopAll(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.talks {
		if t.cancel != nil {
			t.cancel(cause)
		}
	}
}

// busy reports whether a conversation is in somebody's hand.
func (d *desk) busy(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.talks[id] != nil
}
