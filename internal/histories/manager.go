// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// Output is where a [Manager] reads and writes.
type Output struct {
	Screen *terminal.Screen
	JSON   bool // results are JSON documents
	Stdin  io.Reader
	// Zone names the time zone of the times for people, such as Europe/Oslo; empty means
	// the zone of this machine, which TZ changes.
	Zone string
}

// Manager looks after the conversations of a store, for a person or a program.
type Manager struct {
	to        Output
	at        *Location
	store     Titled        // for people
	raw       history.Store // without default titles, for import and JSON Lines
	retention history.Retention
	redact    func(string) string // the secrets of the configuration
	zone      *time.Location
}

// Open opens the store at a location. It creates a missing store only if create is set.
// The caller must close the manager.
func Open(ctx context.Context, cfg *config.Config, at *Location, to Output, create bool) (*Manager, error) {
	zone, err := zoneOf(to.Zone)
	if err != nil {
		return nil, err
	}
	at.Apply(cfg)
	if err := at.find(ctx, cfg, create); err != nil {
		return nil, err
	}
	m := &Manager{to: to, at: at, retention: cfg.Retention(), redact: cfg.Redact(), zone: zone}
	to.Screen.Redact(m.redact, nil) // nothing streams in
	if path := cfg.History.Path; !create && cfg.History.Store.HasPath() && configfile.IsAbsent(path.Reveal()) {
		to.Screen.Hint("There is no " + at.describe(cfg) + " yet.")
		m.use(history.NewMemory())
		return m, nil
	}
	store, err := cfg.OpenHistory(ctx)
	if err != nil {
		return nil, at.OpenError(err)
	}
	m.use(store)
	return m, nil
}

func (m *Manager) use(store history.Store) { m.store, m.raw = Titled{Store: store}, store }

// zoneOf returns the time zone with a name, or the zone of this machine.
func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, exit.Usagef("--time-zone %s: there is no such time zone; write a name such as Europe/Oslo or UTC", display.Text(name))
	}
	return zone, nil
}

// Close closes the store.
func (m *Manager) Close() error { return m.store.Close() }

// Fork copies the first canisters of a conversation, or all if whole is set, to a new
// conversation and prints its ID. An empty ID means a random one.
func (m *Manager) Fork(ctx context.Context, from string, at int, whole bool, to string) error {
	info, err := m.at.Known(ctx, m.store, from)
	if err != nil {
		return err
	}
	if whole {
		at = info.Length
	}
	if at < 1 || at > info.Length {
		return exit.Usagef("--at %d: the conversation %s has the canisters 1 to %d", at, display.Word(from), info.Length)
	}
	if to == "" {
		to = NewID()
	}
	if err := history.CheckID(to); err != nil {
		return exit.Usagef("--id: %w", err)
	}
	if err := m.store.Fork(ctx, from, at, to); err != nil {
		return taken(err, to)
	}
	m.to.Screen.PrintSafe(to + "\n")
	return m.to.Screen.Err()
}

// taken adds advice to an error that says that a conversation with this ID exists.
func taken(err error, id string) error {
	if errors.Is(err, history.ErrExists) {
		return exit.Usagef("the conversation %s already exists; choose another ID with --id: %w", display.Word(id), err)
	}
	return err
}

// Describe changes the title or the tags of a conversation.
func (m *Manager) Describe(ctx context.Context, id string, change history.Change) error {
	if _, err := m.at.Known(ctx, m.store, id); err != nil {
		return err
	}
	if _, err := change.Apply(history.Info{}); err != nil {
		return exit.Usagef("%w", err)
	}
	return m.store.Describe(ctx, id, change)
}

// Delete deletes a conversation permanently. A damaged one is deleted too.
func (m *Manager) Delete(ctx context.Context, id string) error {
	_, err := m.at.Known(ctx, m.store, id)
	_, damaged := errors.AsType[*history.CorruptError](err)
	switch {
	case err == nil, damaged:
		return m.store.Delete(ctx, id, history.AnyLength)
	case errors.Is(err, history.ErrNotFound): // an earlier delete may have left spilled results
		return errors.Join(err, m.store.Delete(ctx, id, history.AnyLength))
	}
	return err
}
