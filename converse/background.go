// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// patience is how long a function of the program may take to return after the context
// of the work has ended. It is then left behind on its own goroutine.
const patience = 10 * time.Second

// background tracks the functions of the program that run on their own goroutines.
type background struct {
	mu      sync.Mutex
	running map[string]int // by name
	changed chan struct{}  // closed when one returns; nil if nothing waits
}

// run calls a function of the program on its own goroutine. The channel is closed when
// it has returned; after that failed may be read, which is a panic or nil.
func (b *background) run(what string, do func()) (done <-chan struct{}, failed *error) {
	b.mu.Lock()
	if b.running == nil {
		b.running = map[string]int{}
	}
	b.running[what]++
	b.mu.Unlock()
	ended, failed := make(chan struct{}), new(error)
	go func() {
		returned := false
		defer func() {
			if !returned {
				*failed = crashed(what, recover())
			}
			b.ended(what)
			close(ended)
		}()
		do()
		returned = true
	}()
	return ended, failed
}

func (b *background) ended(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[what]--; b.running[what] == 0 {
		delete(b.running, what)
	}
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// wait waits until no function runs. When ctx ends first, the error names the functions
// that still run.
func (b *background) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if len(b.running) == 0 {
			b.mu.Unlock()
			return nil
		}
		names := strings.Join(slices.Sorted(maps.Keys(b.running)), ", ")
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		if err := wait(ctx, changed); err != nil {
			return fmt.Errorf("converse: closing: these functions have not returned: %s: %w", names, err)
		}
	}
}

// leftError reports that a function of the program was left behind.
type leftError struct {
	what string
	done <-chan struct{} // closed when it returns after all; may be nil
}

func (e *leftError) Error() string {
	return fmt.Sprintf("converse: %s had not returned %v after the work ended; it keeps running in the background", e.what, patience)
}

// within calls a function of the program and waits for it, until patience has passed
// after the end of ctx: the error is then a [*leftError]. A panic is returned as an
// error.
func within[T any](ctx context.Context, b *background, what string, call func() (T, error)) (T, error) {
	var outcome struct {
		value T
		err   error
	}
	done, failed := b.run(what, func() { outcome.value, outcome.err = call() })
	if !awaited(ctx, done) {
		var none T
		return none, &leftError{what, done}
	}
	if *failed != nil {
		return outcome.value, *failed
	}
	return outcome.value, contain.Error(outcome.err)
}

// awaited waits for a running function, and reports whether it returned in time.
func awaited(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// foreign calls within and records a call that was left behind.
func foreign[T any](ctx context.Context, g *guard, what string, call func() (T, error)) (T, error) {
	value, err := within(ctx, g.background, what, call)
	if left, ok := errors.AsType[*leftError](err); ok {
		g.leave(ctx, left)
	}
	return value, err
}

// guard calls functions of the program for one piece of work. Its methods may be called
// from any goroutine of the work.
type guard struct {
	background *background
	leftovers  *leftovers
	log        *zap.Logger // entries have the secrets of the trusted values removed
	clean      redaction   // Options.Redact, and the secrets of the trusted values
}

func newGuard(ctx context.Context, c *Conversation, leftovers *leftovers) *guard {
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
		cleaned, err := foreign(ctx, g, "Options.Redact", func() (string, error) { return clean(text), nil })
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
		s.done, s.failed = a.guard.background.run("Model.Exchange", func() { s.work(ctx, model, request) })
		defer func() {
			close(s.left)
			cancel()
			if s.overdue || !awaited(ctx, s.done) {
				a.guard.leave(ctx, &leftError{what: "Model.Exchange"})
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
		if retry, ok := event.(Retry); ok {
			retry.Err = contain.Error(retry.Err)
			event = retry
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
			timer := time.NewTimer(patience)
			defer timer.Stop()
			ended, over = nil, timer.C
		case <-over:
			s.overdue = true
			yield(nil, &leftError{what: "Model.Exchange"})
			return
		}
	}
}

// leave records that a function of the program was left behind.
func (g *guard) leave(ctx context.Context, err *leftError) {
	g.leftovers.leave(err.what)
	event.Log(ctx, g.log, zap.ErrorLevel, "a function of the program has not returned and keeps running in the background", event.FunctionLeft, zap.String("function", err.what))
}

// leftovers names the functions that a piece of work has left behind.
type leftovers struct {
	mu    sync.Mutex
	names []string
}

func (l *leftovers) leave(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.names, what) {
		l.names = append(l.names, what)
	}
}

// explain adds the functions that were left behind to an error of the work.
func (l *leftovers) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) == 0 || err == nil {
		return err
	}
	return fmt.Errorf("%w (still running in the background %v later: %s)", err, patience, strings.Join(l.names, ", "))
}
