// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// callForeign calls [foreign.Within] and records a call that was left behind.
func callForeign[T any](ctx context.Context, g *guard, what string, call func() (T, error)) (T, error) {
	value, err := foreign.Within(ctx, g.background, what, call)
	if left, ok := errors.AsType[*foreign.LeftError](err); ok {
		g.leave(ctx, left)
	}
	return value, err
}

// guard calls functions of the program for one piece of work. Its methods may be called
// from any goroutine of the work.
type guard struct {
	background *foreign.Background
	leftovers  *foreign.Leftovers
	log        *zap.Logger // entries have the secrets of the trusted values removed
	clean      redaction   // Options.Redact, and the secrets of the trusted values
}

func newGuard(ctx context.Context, c *Conversation, leftovers *foreign.Leftovers) *guard {
	g := &guard{background: &c.background, leftovers: leftovers, log: c.opts.Logger}
	if secrets := redact.Trusted(ctx, nil); secrets != nil {
		g.log = g.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return redact.Core(core, secrets) }))
	}
	g.clean = g.bounded(ctx, redact.Trusted(ctx, c.opts.Redact))
	return g
}

// unanswered replaces a text that Options.Redact did not return.
const unanswered = "[withheld: the function Redact did not return]"

// bounded returns a redaction for the goroutine of the work that withholds the text if
// clean hangs.
func (g *guard) bounded(ctx context.Context, clean redaction) redaction {
	if clean == nil {
		return nil
	}
	var hangs atomic.Bool
	return func(text string) string {
		if hangs.Load() {
			return unanswered
		}
		cleaned, err := callForeign(ctx, g, "Options.Redact", func() (string, error) { return clean(text), nil })
		if err != nil {
			hangs.Store(true)
			return unanswered
		}
		return cleaned
	}
}

// stream is an exchange with a model, which runs on its own goroutine.
type stream struct {
	events  chan streamed
	more    chan struct{} // receives when the event was taken and the next one is wanted
	left    chan struct{} // closed when no more events are wanted
	done    <-chan struct{}
	failed  *error // set before done is closed, like wrong
	wrong   error
	overdue bool // it did not return in time
}

// streamed is an event or error of a model.
type streamed struct {
	event ModelEvent
	err   error
}

// exchangeWith asks a model. It yields the model's events, one at a time, and an error
// if the model panics or has not returned when patience has passed after the end of
// ctx.
func (a *asker) exchangeWith(ctx context.Context, model Model, request *Request) iter.Seq2[ModelEvent, error] {
	return func(yield func(ModelEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		s := &stream{events: make(chan streamed), more: make(chan struct{}), left: make(chan struct{})}
		s.done, s.failed = a.guard.background.Run("Model.Exchange", func() { s.work(ctx, model, request) })
		defer func() {
			close(s.left)
			cancel()
			if s.overdue || !foreign.Awaited(ctx, s.done) {
				a.guard.leave(ctx, &foreign.LeftError{What: "Model.Exchange"})
			}
		}()
		s.pass(ctx, yield)
	}
}

// work runs the exchange.
func (s *stream) work(ctx context.Context, model Model, request *Request) {
	events := model.Exchange(ctx, request)
	if events == nil {
		s.wrong = &ModelError{Message: "Model.Exchange returned no sequence of events"}
		return
	}
	events(func(event ModelEvent, err error) bool {
		switch e := event.(type) {
		case Retry:
			e.Err = contain.Error(e.Err)
			event = e
		case Fallback:
			e.Err = contain.Error(e.Err)
			event = e
		}
		select {
		case s.events <- streamed{event, contain.Error(err)}:
		case <-s.left:
			return false
		}
		select {
		case <-s.more:
			return true
		case <-s.left:
			return false
		}
	})
}

// pass yields the events until the model or the caller stops.
func (s *stream) pass(ctx context.Context, yield func(ModelEvent, error) bool) {
	ended, over := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case e := <-s.events:
			if !yield(e.event, e.err) {
				return
			}
			s.more <- struct{}{}
		case <-s.done:
			if err := cmp.Or(*s.failed, s.wrong); err != nil {
				yield(nil, err)
			}
			return
		case <-ended:
			timer := time.NewTimer(foreign.Patience)
			defer timer.Stop()
			ended, over = nil, timer.C
		case <-over:
			s.overdue = true
			yield(nil, &foreign.LeftError{What: "Model.Exchange"})
			return
		}
	}
}

// leave records that a function of the program was left behind.
func (g *guard) leave(ctx context.Context, err *foreign.LeftError) {
	g.leftovers.Leave(err.What)
	event.Log(ctx, g.log, zap.ErrorLevel, "a function of the program has not returned and keeps running in the background", event.FunctionLeft, zap.String("function", err.What))
}
