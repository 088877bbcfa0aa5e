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

// Engine is a conversation engine in addition to the built-in in-process one. A program
// passes it to [Main] with [WithEngine].
type Engine struct {
	// Name is the value for serve --engine. The flag --NAME of serve and worker takes the
	// address of the engine. The command knows the name "temporal" even if no such engine
	// was added.
	Name string
	// Flags adds flags to the commands serve and worker; nil adds none. The names of the
	// flags should begin with the name of the engine.
	Flags func(flags *pflag.FlagSet)
	// Open returns the engine at an address, for a serving process. The engine is closed
	// with the process, before the store, and must close everything that Open opened. The
	// context bounds only Open.
	Open func(ctx context.Context, address string, parts Parts) (engine.Engine, error)
	// Work runs conversations for the engine at an address until ctx ends, and returns
	// when nothing of it is left running; nil means no failure. It calls ready once, when
	// it has started.
	Work func(ctx context.Context, address string, parts Parts, ready func()) error
}

// Parts are the resources for an engine. All of them outlive the engine.
type Parts struct {
	// Store holds the conversations. List returns only those of the clients being served.
	Store history.Store
	// Open returns the conversation with a given ID, with the store as its log.
	Open converse.OpenFunc
	// Values returns the trusted values of a conversation. An error means that they can
	// no longer be determined.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Notifier sends deltas between machines; nil if the store does not support it.
	Notifier Notifier
	// Logger redacts the secrets of the configuration.
	Logger *zap.Logger
}

// Notifier is implemented by stores that machines share, for example by package
// converse/history/postgres.
type Notifier interface {
	// Notify sends a payload to the current listeners of a conversation.
	Notify(ctx context.Context, conversation string, payload []byte) error
	// Listen yields the payloads sent from now on, and nil where some may have been
	// missed.
	Listen(ctx context.Context, conversation string) iter.Seq2[[]byte, error]
}

// Option configures [Main].
type Option func(*program)

// WithEngine adds an engine.
func WithEngine(e Engine) Option {
	return func(p *program) { p.engines = append(p.engines, e) }
}
