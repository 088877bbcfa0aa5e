// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"iter"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// Engine is an engine for conversations beside that of one process, which a
// program brings along that gives it to [Main] with [WithEngine].
type Engine struct {
	// Name is what serve --engine takes. The command knows "temporal", whose
	// address the flag --temporal names.
	Name string
	// Flags adds flags to the commands serve and worker; nil adds none. Let their
	// names begin with that of the engine.
	Flags func(flags *pflag.FlagSet)
	// Open returns the engine that is at an address, for a process that serves. It
	// is closed with the process, before the store, and closes whatever Open has
	// opened. The context bounds the opening.
	Open func(ctx context.Context, address string, parts Parts) (engine.Engine, error)
	// Work carries on conversations as the engine at an address says, until ctx
	// ends, and returns when nothing of it is left; nil is no failure. Ready is
	// called once, when it has begun.
	Work func(ctx context.Context, address string, parts Parts, ready func()) error
}

// Parts are what an engine works with. All of them last longer than it does.
type Parts struct {
	// Store has the conversations. Those that others keep in it are not listed.
	Store history.Store
	// Open makes the conversation of an identity, with the store as its log.
	Open converse.OpenFunc
	// Values are the trusted values of a conversation. An error says that nobody
	// knows them any more.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Notifier passes payloads on between machines, for deltas; nil if the store cannot.
	Notifier Notifier
	// Logger has the secrets of the configuration taken out.
	Logger *zap.Logger
}

// Notifier is what a store can do that machines share, as that of package
// converse/history/postgres does.
type Notifier interface {
	// Notify passes a payload on to those who listen to a conversation now.
	Notify(ctx context.Context, conversation string, payload []byte) error
	// Listen yields the payloads that are passed on from now on, and nil where
	// something may have been missed.
	Listen(ctx context.Context, conversation string) iter.Seq2[[]byte, error]
}

// Option is a choice of [Main].
type Option func(*program)

// WithEngine brings along an engine.
func WithEngine(e Engine) Option {
	return func(p *program) { p.engines = append(p.engines, e) }
}
