// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/spill"
	"github.com/consort-go/consort/internal/redact"
)

// StoreKind is a kind of conversation store.
type StoreKind string

// The kinds of stores; empty means StoreSQLite.
const (
	StoreSQLite   StoreKind = "sqlite"   // a database in one file
	StoreFiles    StoreKind = "files"    // a folder of human-readable lines
	StorePostgres StoreKind = "postgres" // a PostgreSQL server, which several machines can share
	StoreNone     StoreKind = "none"     // nothing is stored, even by programs that otherwise would
)

// HasPath reports whether the store is a file or a folder at [History.Path], which other
// machines do not share.
func (k StoreKind) HasPath() bool { return k != StorePostgres && k != StoreNone }

// History configures where and how long conversations are stored.
type History struct {
	// Path is the file of StoreSQLite, or the folder of StoreFiles. Required for both.
	Path Value
	// DSN locates the server and the database of StorePostgres, and may contain a
	// password. Required for StorePostgres.
	DSN Value
	// Schema is the schema of the PostgreSQL tables; empty means consort.
	Schema string
	// Store is the kind; empty means StoreSQLite.
	Store StoreKind
	// Keep is how long a conversation is kept after its last change; 0 means without
	// limit. The program that opens the store must apply it, with [History.Retention].
	Keep time.Duration
	// Rules are exceptions to Keep. The first matching rule decides.
	Rules []KeepRule
	// Doubt says how to handle calls whose outcome is unknown because a process died;
	// empty means converse.DoubtReport.
	Doubt converse.Doubt
	// PruneOpen also deletes conversations that do not end with an answer.
	PruneOpen bool
}

// KeepRule sets how long conversations with the tag and the owner are kept. Tag or Owner
// may be empty.
type KeepRule struct {
	Tag, Owner string
	Keep       time.Duration // 0 means without limit
}

func (h *History) fields() []field {
	return []field{
		{"path", directory(&h.Path)},
		{"store", choice(&h.Store, StoreSQLite, StoreFiles, StorePostgres, StoreNone)},
		{"dsn", secret(&h.DSN)},
		{"schema", text(&h.Schema)},
		{"doubt", choice(&h.Doubt, converse.DoubtReport, converse.DoubtAsk)},
		{"keep", duration(&h.Keep)},
		{"rules", each(&h.Rules, func(rule *KeepRule) value { return tableOf(rule.fields(), rule.check) })},
		{"prune_open", boolean(&h.PruneOpen)},
	}
}

func (rule *KeepRule) fields() []field {
	return []field{{"tag", text(&rule.Tag)}, {"owner", text(&rule.Owner)}, {"keep", duration(&rule.Keep)}}
}

func (rule *KeepRule) check(r *reader, n *node) {
	if n.member("tag") == nil && n.member("owner") == nil {
		r.missing(n, "tag", `missing: expected tag, owner, or both, to select the conversations of this rule; for all conversations, set history.keep`)
	}
}

func (h *History) check(r *reader, n *node) {
	if h.Store == StoreNone {
		for _, stray := range n.members() {
			if stray.key != "store" {
				r.add(r.problem(stray.keyAt, stray.path(), `not for store = "none", which stores nothing`))
			}
		}
		return
	}
	path, dsn, schema := n.member("path"), n.member("dsn"), n.member("schema")
	postgres := h.Store == StorePostgres
	switch {
	case postgres && dsn == nil:
		r.missing(n, "dsn", `missing: expected the address of the server, such as dsn = "env:DATABASE_URL"`)
	case !postgres && path == nil:
		r.missing(n, "path", `missing: expected the place of the conversations, such as path = "history.db"`)
	}
	for _, stray := range []*node{dsn, schema} {
		if stray != nil && !postgres {
			r.add(r.problem(stray.keyAt, stray.path(), `only for store = "postgres"`))
		}
	}
	if path != nil && postgres {
		r.add(r.problem(path.keyAt, path.path(), `not for store = "postgres", whose place is set by dsn`))
	}
}

// Keeps reports whether conversations are stored: History is set, and its Store is not
// StoreNone.
func (c *Config) Keeps() bool { return c.History != nil && c.History.Store != StoreNone }

// Retention returns how long conversations are kept, for [history.Retain]. If h is nil,
// they are kept without limit.
func (h *History) Retention() history.Retention {
	if h == nil {
		return history.Retention{}
	}
	retention := history.Retention{Keep: h.Keep, Open: h.PruneOpen}
	for _, rule := range h.Rules {
		retention.Rules = append(retention.Rules, history.RetentionRule{Tag: rule.Tag, Owner: rule.Owner, Keep: rule.Keep})
	}
	return retention
}

// OpenHistory opens the conversation store and creates it if necessary. It returns nil if
// nothing is stored. Deleting a conversation from the store also deletes its spilled
// results. The caller must close the store.
func (c *Config) OpenHistory(ctx context.Context) (history.Store, error) {
	if !c.Keeps() {
		return nil, nil
	}
	store, err := c.History.open(ctx, c.Redact())
	if err != nil {
		return nil, about("history", err)
	}
	if folder := c.Conversation.Spill.Reveal(); folder != "" {
		store = spill.NewFolder(folder).Store(store)
	}
	return store, nil
}

func (h *History) open(ctx context.Context, clean func(string) string) (history.Store, error) {
	key, place := "path", h.Path.Reveal()
	if h.Store == StorePostgres {
		key, place = "dsn", h.DSN.Reveal()
	}
	var store history.Store
	err := errors.New("missing")
	switch {
	case !slices.Contains([]StoreKind{"", StoreSQLite, StoreFiles, StorePostgres}, h.Store):
		return nil, about("store", fmt.Errorf("unknown store %q", h.Store))
	case place == "":
	case h.Store == StorePostgres:
		store, err = opened(postgres.Open(ctx, place, &postgres.Options{Schema: h.Schema}))
	case h.Store == StoreFiles:
		store, err = opened(files.Open(place, nil))
	default:
		store, err = opened(sqlite.Open(place, nil))
	}
	if err != nil {
		return nil, about(key, redact.Error(err, clean))
	}
	return store, nil
}

// opened returns store as an interface; nil if there is an error.
func opened[S history.Store](store S, err error) (history.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Redact returns a function that removes the secrets of the configuration from a text. It
// is never nil and may be called concurrently.
func (c *Config) Redact() func(text string) string {
	if clean := redact.New(c.secrets()...); clean != nil {
		return clean
	}
	return func(text string) string { return text }
}

// History returns the conversation store; nil if nothing is stored. The first call opens
// it, and Close closes it. A failed call may be repeated. History may be called
// concurrently.
func (a *Assembly) History(ctx context.Context) (history.Store, error) {
	a.opening.Lock()
	defer a.opening.Unlock()
	if a.history == nil && a.openHistory != nil {
		store, err := a.openHistory(ctx)
		if err != nil {
			return nil, err
		}
		a.history = store
	}
	return a.history, nil
}

// closeHistory closes the store permanently.
func (a *Assembly) closeHistory() error {
	a.opening.Lock()
	defer a.opening.Unlock()
	store := a.history
	a.openHistory = func(context.Context) (history.Store, error) { return nil, history.ErrClosed }
	if store == nil {
		return nil
	}
	return store.Close()
}
