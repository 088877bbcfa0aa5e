// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
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
	log        *zap.Logger    // entries have the secrets of the trusted values removed
	clean      redaction.Func // Options.Redact, and the secrets of the trusted values
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
func (g *guard) bounded(ctx context.Context, clean redaction.Func) redaction.Func {
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

// exchangeWith asks a model, which runs on its own goroutine. It yields the model's
// events, one at a time, while the model may be a few deltas ahead, and an error if the model panics or has not returned when
// patience has passed after the end of ctx.
func (a *asker) exchangeWith(ctx context.Context, model Model, request *Request) iter.Seq2[ModelEvent, error] {
	return foreign.Stream(ctx, a.guard.background, "Model.Exchange", a.guard.leave, received, func(ctx context.Context) iter.Seq2[ModelEvent, error] {
		if events := model.Exchange(ctx, request); events != nil {
			return events
		}
		return func(yield func(ModelEvent, error) bool) {
			yield(nil, &ModelError{Message: "Model.Exchange returned no sequence of events"})
		}
	})
}

// received returns an event of a model with its error contained, so that a panic of the
// error's methods does no harm, and whether the model goes on after it at once or has ended.
// [foreign.Stream] contains the error of the exchange.
func received(event ModelEvent) (_ ModelEvent, goesOn, last bool) {
	switch e := event.(type) {
	case Delta:
		return event, true, false
	case Reply:
		return event, false, true
	case Retry:
		e.Err = contain.Error(e.Err)
		return e, false, false
	case Fallback:
		e.Err = contain.Error(e.Err)
		return e, false, false
	}
	return event, false, false
}

// leave records that a function of the program was left behind.
func (g *guard) leave(ctx context.Context, err *foreign.LeftError) {
	g.leftovers.Leave(err.What)
	logevent.Log(ctx, g.log, zap.ErrorLevel, "a function of the program has not returned and keeps running in the background", logevent.FunctionLeft, zap.String("function", err.What))
}
