// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/contain"
)

// ahead is how many events a function may hand over before the first of them is taken, so that
// events that arrive together do not need two switches of goroutines each.
const ahead = 8

// Stream yields, one at a time, the events of a function of the program, which runs on
// its own goroutine. It yields an error if the function panics, and a [*LeftError] if it
// has not returned when Patience has passed after the end of ctx. Leave is called if the
// function still runs then. Each event passes through receive on the goroutine of the function,
// which then waits until the next event is wanted, unless receive says that it goes on
// at once, or that the event was the last: then it is told at once that no more are wanted.
func Stream[E any](ctx context.Context, b *Background, what string, leave func(context.Context, *LeftError), receive func(E) (_ E, goesOn, last bool), open func(context.Context) iter.Seq2[E, error]) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		s := &stream[E]{what: what, receive: receive, events: make(chan streamed[E], ahead), more: make(chan struct{}), left: make(chan struct{})}
		s.done, s.failed = b.Run(what, func() { open(ctx)(s.send) })
		defer func() {
			close(s.left)
			cancel()
			if s.overdue || !Awaited(ctx, s.done) {
				leave(ctx, &LeftError{What: what})
			}
		}()
		s.pass(ctx, yield)
	}
}

// stream is a function that yields events on its own goroutine.
type stream[E any] struct {
	what    string
	receive func(E) (_ E, goesOn, last bool)
	events  chan streamed[E]
	more    chan struct{} // receives when an event with waits was taken and the next one is wanted
	left    chan struct{} // closed when no more events are wanted
	ended   atomic.Bool   // the function has handed over its last event
	done    <-chan struct{}
	failed  *error // set before done is closed
	overdue bool   // it did not return in time
}

// streamed is an event or an error of the function.
type streamed[E any] struct {
	event E
	err   error
	waits bool // the function waits until the next event is wanted
}

// send hands over an event, and reports whether the next one is wanted. The function may
// call it again after it returned false.
func (s *stream[E]) send(event E, err error) bool {
	goesOn, last := false, false
	if err == nil {
		event, goesOn, last = s.receive(event)
	}
	select {
	case <-s.left: // there may be room for the event
		return false
	default:
	}
	if s.ended.Load() {
		return false
	}
	s.ended.Store(last)
	select {
	case s.events <- streamed[E]{event, contain.Error(err), !goesOn && !last}:
	case <-s.left:
		return false
	}
	if goesOn || last {
		return goesOn
	}
	select {
	case <-s.more:
		return true
	case <-s.left:
		return false
	}
}

// pass yields the events until the function or the caller stops.
func (s *stream[E]) pass(ctx context.Context, yield func(E, error) bool) {
	var none E
	ended, over := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case e := <-s.events:
			if !yield(e.event, e.err) {
				return
			}
			if e.waits {
				s.more <- struct{}{}
			}
		case <-s.done:
			for range len(s.events) { // the function has not waited after these
				if e := <-s.events; !yield(e.event, e.err) {
					return
				}
			}
			if *s.failed != nil {
				yield(none, *s.failed)
			}
			return
		case <-ended:
			timer := time.NewTimer(Patience)
			defer timer.Stop()
			ended, over = nil, timer.C
		case <-over:
			s.overdue = true
			yield(none, &LeftError{What: s.what})
			return
		}
	}
}
