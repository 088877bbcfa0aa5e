// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"iter"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// Temporal is the name of an engine that a program may lack: the command knows its flags
// in any case.
const Temporal = "temporal"

// Engine is a conversation engine in addition to the built-in in-process one.
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
	// Store holds the conversations. Its List returns only those of the clients being served.
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

// EngineNamed returns the engine with a name, of those that the program added.
func EngineNamed(engines []Engine, name string) (Engine, error) {
	for _, e := range engines {
		if e.Name == name {
			return e, nil
		}
	}
	if name == Temporal {
		return Engine{}, exit.Usagef("this program was built without the engine temporal. To build one that has it, in a copy of the repository:\n\n    go install -C converse/temporal ./cmd/consort")
	}
	return Engine{}, exit.Usagef("there is no engine %q; omit --engine to run conversations in this process", name)
}

// NewParts returns the resources for an engine.
func NewParts(assembly *config.Assembly, store histories.ClientsOnly) Parts {
	p := Parts{Store: store, Open: assembly.OpenServed(store.Store), Logger: assembly.Logger}
	p.Values = func(ctx context.Context, info history.Info) ([]invoker.Value, error) {
		info.Owner = store.Known(info.Owner)
		return assembly.ValuesOf(ctx, info, store)
	}
	p.Notifier = notifierOf(store.Store)
	return p
}

// notifierOf returns the Notifier that a store is, or that it wraps, as one that spills does,
// or nil.
func notifierOf(store history.Store) Notifier {
	if n, ok := store.(Notifier); ok {
		return n
	}
	if wrapper, ok := store.(interface{ Unwrap() history.Store }); ok {
		return notifierOf(wrapper.Unwrap())
	}
	return nil
}

// ownValues returns the function values, with the trusted values of the person who started
// the process for conversations without an owner: they belong to that person.
func (s *server) ownValues(values func(context.Context, history.Info) ([]invoker.Value, error)) func(context.Context, history.Info) ([]invoker.Value, error) {
	return func(ctx context.Context, info history.Info) ([]invoker.Value, error) {
		if info.Owner == "" {
			return s.Assembly.Trusted, nil
		}
		return values(ctx, info)
	}
}

// openEngine returns the engine that the options name, or else the engine of this process.
func openEngine(ctx context.Context, o *Options, parts Parts) (engine.Engine, error) {
	if o.Engine == "" {
		return engine.NewLocal(parts.Store, parts.Open, &engine.Options{Values: parts.Values, Others: o.Config.Others(o.Console != nil), Logger: parts.Logger})
	}
	e, err := EngineNamed(o.Engines, o.Engine)
	if err != nil {
		return nil, err
	}
	if o.Address == "" {
		return nil, exit.Usagef("--engine %s: give the address of its server with --%[1]s ADDRESS", o.Engine)
	}
	bounded, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	return e.Open(bounded, o.Address, parts)
}
