// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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

// leave records that a function of the program was left behind.
func (g *guard) leave(ctx context.Context, err *foreign.LeftError) {
	g.leftovers.Leave(err.What)
	logevent.Log(ctx, g.log, zap.ErrorLevel, "a function of the program has not returned and keeps running in the background", logevent.FunctionLeft, zap.String("function", err.What))
}

// watched calls a function that only observes, such as an audit. A panic of it is
// logged and has no other effect.
func (g *guard) watched(ctx context.Context, what string, watch func()) {
	if err := contain.Call(what, watch); err != nil {
		g.logCrash(ctx, err)
	}
}

// logCrash logs a panic.
func (g *guard) logCrash(ctx context.Context, err error) {
	fields := []zap.Field{zap.String("cause", g.logged(err.Error()))}
	if panicked, ok := errors.AsType[*contain.Panic](err); ok {
		fields = append(fields, zap.ByteString("stack", panicked.Stack))
	}
	logevent.Log(ctx, g.log, zap.ErrorLevel, "a function of the program panicked", logevent.FunctionPanicked, fields...)
}

// guardOptions wraps the functions of the options that return no error, so that their
// panics are named after them or do no harm.
func (c *Conversation) guardOptions() {
	newID, now := c.opts.NewID, c.opts.Now
	c.opts.NewID = func() string {
		defer foreign.RenamePanic("Options.NewID")
		id := newID()
		if id == "" {
			panic(&foreign.Misuse{Err: errors.New("converse: Options.NewID returned an empty ID")})
		}
		return id
	}
	c.opts.Now = func() time.Time {
		defer foreign.RenamePanic("Options.Now")
		return now()
	}
	c.opts.Redact = redact.Contained(c.opts.Redact, func(err error) {
		// Do not log its value: it may contain the text to be redacted.
		fields := []zap.Field{zap.String("function", "Options.Redact")}
		if panicked, ok := errors.AsType[*contain.Panic](err); ok {
			fields = append(fields, zap.ByteString("stack", panicked.Stack))
		}
		logevent.Log(context.Background(), c.opts.Logger, zap.ErrorLevel, "a text was withheld, because Options.Redact panicked", logevent.FunctionPanicked, fields...)
	})
}
