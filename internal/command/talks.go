// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// temporalName is an engine that the command knows but does not contain.
const temporalName = "temporal"

// withEngines adds the flags of engines to a command: the addresses, and each engine's
// own flags. The map holds the addresses by engine name.
func (p *program) withEngines(cmd *cobra.Command) map[string]*string {
	addresses := map[string]*string{}
	names := []string{temporalName}
	for _, e := range p.engines {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
		if e.Flags != nil {
			e.Flags(cmd.Flags())
		}
	}
	for _, name := range names {
		addresses[name] = cmd.Flags().String(name, "", "the `ADDRESS` of the "+name+" server, such as 127.0.0.1:7233")
	}
	return addresses
}

// engineNamed returns an engine that the program added.
func (p *program) engineNamed(name string) (Engine, error) {
	for _, e := range p.engines {
		if e.Name == name {
			return e, nil
		}
	}
	if name == temporalName {
		return Engine{}, exit.Usagef("this program is built without the engine temporal, for which few want to pay. Another one of the same name has it; in a copy of the repository:\n\n    go install -C converse/temporal ./cmd/consort")
	}
	return Engine{}, exit.Usagef("there is no engine %q; without --engine conversations are carried on by this process", name)
}

// theirs is a store that lists only conversations of the clients being served. An engine
// must not run the others.
type theirs struct {
	history.Store
	scope string // of the configuration, if other configurations share the store
}

// owner converts an owner to its name in the store, and known converts it back.
func (s theirs) owner(known string) string {
	return config.OwnerPrefix + s.scope + strings.TrimPrefix(known, config.OwnerPrefix)
}

func (s theirs) known(owner string) string {
	return config.OwnerPrefix + strings.TrimPrefix(owner, s.owner(""))
}

// served reports whether a conversation belongs to a client of serve.
func served(info history.Info) bool { return strings.HasPrefix(info.Owner, config.OwnerPrefix) }

// ofAnother reports whether a conversation belongs to a client of serve whose trusted
// values this command does not have. Approvals for that client would not be valid here.
func (p *program) ofAnother(ctx context.Context, assembly *config.Assembly, info history.Info) (bool, error) {
	if !served(info) {
		return false, nil
	}
	scope, err := p.scope()
	if err != nil {
		return false, err
	}
	owner, err := assembly.OwnerOf(invoker.WithTrusted(ctx, assembly.Trusted...))
	return owner != theirs{scope: scope}.known(info.Owner), err
}

// List implements [history.Store].
func (s theirs) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		limit, n := filter.Limit, 0
		filter.Limit = 0
		for info, err := range s.Store.List(ctx, filter) {
			if err == nil && !strings.HasPrefix(info.Owner, s.owner("")) {
				continue
			}
			if n++; !yield(info, err) || n == limit {
				return
			}
		}
	}
}

// parts returns the resources for an engine.
func parts(assembly *config.Assembly, store theirs) Parts {
	p := Parts{Store: store, Open: assembly.OpenServed(store.Store), Logger: assembly.Logger}
	p.Values = func(ctx context.Context, info history.Info) ([]invoker.Value, error) {
		info.Owner = store.known(info.Owner)
		return assembly.ValuesOf(ctx, info)
	}
	p.Notifier, _ = store.Store.(Notifier)
	return p
}

// openEngine returns the named engine at an address; an empty name selects the engine of
// this process.
func (p *program) openEngine(ctx context.Context, name, address string, cfg *config.Config, with Parts) (engine.Engine, error) {
	if name == "" {
		return engine.NewLocal(with.Store, with.Open, &engine.Options{Values: with.Values, Others: others(cfg), Logger: with.Logger})
	}
	e, err := p.engineNamed(name)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, exit.Usagef("--engine %s: say where its server is, with --%[1]s ADDRESS", name)
	}
	bounded, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	return e.Open(bounded, address, with)
}

// others returns how long another process may work on a conversation without a sign of
// it, or 0 if no other process can. It is longer than any call. Over standard input and
// output each host starts its own process, so there are often several.
func others(cfg *config.Config) time.Duration {
	if cfg.History.Store.HasPath() && cfg.Serve.Listens() {
		return 0
	}
	longest := ensemble.DefaultCallLimit
	for _, server := range cfg.Supervised() {
		longest = max(longest, server.CallLimit)
	}
	return longest + time.Minute
}

// offerTalks offers the tool converse with stored conversations. The function stop ends
// the engine and leaves running turns for later.
func (s *serving) offerTalks(ctx context.Context, cfg *config.Config, assembly *config.Assembly) (stop func() error, err error) {
	kept, err := assembly.History(ctx)
	if err != nil {
		return nil, s.unopened(err)
	}
	scope, err := s.scope()
	if err != nil {
		return nil, err
	}
	store := theirs{kept, scope}
	with := parts(assembly, store)
	address := ""
	if given := s.addresses[s.engine]; given != nil {
		address = *given
	}
	carries, err := s.openEngine(ctx, s.engine, address, cfg, with)
	if err != nil {
		return nil, err
	}
	t := &talks{engine: carries, store: store, open: with.Open, owner: assembly.OwnerOf, ending: s.ending}
	tool, err := t.tool()
	if err != nil {
		return nil, errors.Join(err, carries.Close(ctx))
	}
	assembly.Serve.Tools = append(assembly.Serve.Tools, tool)
	assembly.ServeGRPC.Tools = append(assembly.ServeGRPC.Tools, tool)
	end := t.wakes(assembly.Logger)
	return func() error {
		end()
		now, cancel := context.WithCancel(context.Background())
		cancel()
		return carries.Close(now)
	}, nil
}

// wakeEvery is how often the store is polled for answers from other processes.
const wakeEvery = 2 * time.Second

// wakes makes the engine continue conversations whose last canister is an answer, for
// example from consort approve. It runs on a goroutine; stop ends it.
func (t *talks) wakes(log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(wakeEvery)
		defer again.Stop()
		since := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			began := time.Now()
			t.wake(ctx, history.Filter{Open: true, Since: since.Add(-wakeEvery)}, log)
			since = began
		}
	}()
	return func() { cancel(); <-done }
}

// wake sends the last message again in conversations that have a new answer. The engine
// does not record the message twice; it only checks the conversation.
func (t *talks) wake(ctx context.Context, changed history.Filter, log *zap.Logger) {
	for info, err := range t.store.List(ctx, changed) {
		if err == nil && info.Last != canister.KindAnswer {
			continue
		}
		if err == nil {
			var last canister.User
			if last, _, err = lastMessage(ctx, t.store, info.ID); err == nil {
				err = t.nudge(ctx, info.ID, last)
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // a deadline means that the conversation is at work
			event.Log(ctx, log, zap.WarnLevel, "a conversation that has an answer could not be carried on", event.WakeFailed, zap.String(telemetry.ConversationField, info.ID), zap.Error(err))
		}
	}
}

// nudge makes the engine check a conversation whose last message is last. It waits at
// most wakeEvery for a conversation that is at work.
func (t *talks) nudge(ctx context.Context, id string, last canister.User) error {
	bounded, cancel := context.WithTimeout(ctx, wakeEvery)
	defer cancel()
	return t.engine.Send(bounded, id, last)
}

func (p *program) workerCommand() *cobra.Command {
	var addresses map[string]*string
	cmd := p.withHistory(&cobra.Command{
		Use:   "worker",
		Short: "Carry on conversations that others serve",
		Long: "Worker carries on the conversations of consort serve --engine NAME, on this machine and\n" +
			"beside any number of others, with the tools and the model of the configuration. It\n" +
			"ends with a signal, and leaves what is under way to the others.",
		Example: "  consort worker --temporal 127.0.0.1:7233",
		Args:    cobra.NoArgs,
		RunE:    does(func(ctx context.Context, _ []string) error { return p.work(ctx, addresses) }),
	})
	addresses = p.withEngines(cmd)
	return cmd
}

func (p *program) work(ctx context.Context, addresses map[string]*string) (err error) {
	var named []string
	for name, address := range addresses {
		if *address != "" {
			named = append(named, name)
		}
	}
	if len(named) != 1 {
		return exit.Usagef("say which engine to work for, and where its server is, such as --temporal 127.0.0.1:7233")
	}
	e, err := p.engineNamed(named[0])
	if err != nil {
		return err
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	if !cfg.Keeps() {
		return p.noStore()
	}
	p.watched = true
	assembly, err := p.withModel(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	store, err := assembly.History(ctx)
	if err != nil {
		return p.unopened(err)
	}
	address := *addresses[e.Name]
	err = e.Work(ctx, address, parts(assembly, theirs{Store: store}), func() { p.screen.Note("working for %s at %s", e.Name, address) })
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return nil
}
