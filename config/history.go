// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/ensemble"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
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

// stores are the kinds of stores; the first is the default. Another kind needs its
// package, which passes historytest.TestStore, and an entry here.
var stores = []storeKind{
	{kind: StoreSQLite, path: true, open: func(_ context.Context, h *History) (history.Store, error) {
		return opened(sqlite.Open(h.Path.Reveal(), nil))
	}},
	{kind: StoreFiles, path: true, open: func(_ context.Context, h *History) (history.Store, error) {
		return opened(files.Open(h.Path.Reveal(), nil))
	}},
	{kind: StorePostgres, title: "PostgreSQL", open: func(ctx context.Context, h *History) (history.Store, error) {
		return opened(postgres.Open(ctx, h.DSN.Reveal(), &postgres.Options{Schema: h.Schema}))
	}},
}

// storeKind is an entry of stores.
type storeKind struct {
	kind  StoreKind
	path  bool   // it is at History.Path, and otherwise at History.DSN
	title string // for people; the kind if it is empty
	open  func(context.Context, *History) (history.Store, error)
}

// find returns the entry of a kind, or nil.
func (k StoreKind) find() *storeKind {
	kind := cmp.Or(k, stores[0].kind)
	for i := range stores {
		if stores[i].kind == kind {
			return &stores[i]
		}
	}
	return nil
}

// storeKinds returns the values of the key store.
func storeKinds() []StoreKind {
	var all []StoreKind
	for _, s := range stores {
		all = append(all, s.kind)
	}
	return append(all, StoreNone)
}

// HasPath reports whether the store is a file or a folder at [History.Path], which other
// machines do not share.
func (k StoreKind) HasPath() bool {
	found := k.find()
	return found != nil && found.path
}

// Title returns the name of the kind of store for people.
func (k StoreKind) Title() string {
	if found := k.find(); found != nil && found.title != "" {
		return found.title
	}
	return string(k)
}

// History configures where and how long conversations are stored. The program that opens
// the store must apply Retention, with [history.Retention.Apply].
type History struct {
	history.Retention
	// Path is the file of StoreSQLite, or the folder of StoreFiles. Required for both.
	Path values.Value
	// DSN locates the server and the database of StorePostgres, and may contain a
	// password. Required for StorePostgres.
	DSN values.Value
	// Schema is the schema of the PostgreSQL tables; empty means consort.
	Schema string
	// Store is the kind; empty means StoreSQLite.
	Store StoreKind
	// AskDoubt is converse.Options.AskDoubt.
	AskDoubt bool
}

func (h *History) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("path", grammar.Path(&h.Path)),
		grammar.Key("store", grammar.Choice(&h.Store, storeKinds()...)),
		grammar.Key("dsn", grammar.Secret(&h.DSN)),
		grammar.Key("schema", grammar.Text(&h.Schema)),
		grammar.Key("doubt", grammar.WordFor(&h.AskDoubt, grammar.Means("report", false), grammar.Means("ask", true))),
		grammar.Key("keep", grammar.Duration(&h.Keep)),
		grammar.Key("rules", grammar.Each(&h.Rules, func(rule *history.RetentionRule) grammar.Kind { return grammar.Table(ruleFields(rule), checkRule) })),
		grammar.Key("prune_open", grammar.Boolean(&h.ExpireOpen)),
	}
}

func ruleFields(rule *history.RetentionRule) []grammar.Field {
	return []grammar.Field{grammar.Key("tag", grammar.Text(&rule.Tag)), grammar.Key("owner", grammar.Text(&rule.Owner)), grammar.Key("keep", grammar.Duration(&rule.Keep))}
}

func checkRule(r *grammar.Reader, n *document.Node) {
	if n.Member("tag") == nil && n.Member("owner") == nil {
		r.Missing(n, "tag", `missing: expected tag, owner, or both, to select the conversations of this rule; for all conversations, set history.keep`)
	}
}

func (h *History) check(r *grammar.Reader, n *document.Node) {
	if h.Store == StoreNone {
		for _, stray := range n.Members() {
			if stray.Key != "store" {
				r.WrongKey(stray, `not for store = "none", which stores nothing`)
			}
		}
		return
	}
	path, dsn, schema := n.Member("path"), n.Member("dsn"), n.Member("schema")
	hasPath := h.Store.HasPath()
	var remote []string
	for _, s := range stores {
		if !s.path {
			remote = append(remote, string(s.kind))
		}
	}
	switch {
	case !hasPath && dsn == nil:
		r.Missing(n, "dsn", `missing: expected the address of the server, such as dsn = "env:DATABASE_URL"`)
	case hasPath && path == nil:
		r.Missing(n, "path", `missing: expected the place of the conversations, such as path = "history.db"`)
	}
	for _, stray := range []*document.Node{dsn, schema} {
		if stray != nil && hasPath {
			r.WrongKey(stray, "only for store = %s", plaintext.OneOf(remote))
		}
	}
	if path != nil && !hasPath {
		r.WrongKey(path, "not for store = %q, whose place is set by dsn", h.Store)
	}
}

// Keeps reports whether conversations are stored: History is set, and its Store is not
// StoreNone.
func (c *Config) Keeps() bool { return c.History != nil && c.History.Store != StoreNone }

// Others returns how long another process may work with the conversations of the store without a sign of
// it, or 0 if no other process can. It is longer than any call. Over standard input and output
// each host starts its own process, so there are often several, and a console of the person who started it
// can be opened next to a server.
func (c *Config) Others(console bool) time.Duration {
	if !c.Keeps() || c.History.Store.HasPath() && c.Serve != nil && c.Serve.Listens() && !console {
		return 0
	}
	longest := ensemble.DefaultCallLimit
	for _, server := range c.Supervised() {
		longest = max(longest, server.CallLimit)
	}
	return longest + time.Minute
}

// Retention returns how long conversations are kept: without limit if they are not stored.
func (c *Config) Retention() history.Retention {
	if c.History == nil {
		return history.Retention{}
	}
	return c.History.Retention
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
		return nil, grammar.About("history", err)
	}
	if folder := c.Conversation.Spill.Reveal(); folder != "" {
		store = spill.NewFolder(folder).Store(store)
	}
	return store, nil
}

func (h *History) open(ctx context.Context, clean func(string) string) (history.Store, error) {
	found := h.Store.find()
	if found == nil {
		return nil, grammar.About("store", fmt.Errorf("unknown store %q", h.Store))
	}
	key, place := "path", h.Path
	if !found.path {
		key, place = "dsn", h.DSN
	}
	if place.Reveal() == "" {
		return nil, grammar.About(key, errors.New("missing"))
	}
	store, err := found.open(ctx, h)
	if err != nil {
		return nil, grammar.About(key, redact.Error(err, clean))
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
	s := a.shared
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.history == nil && s.openHistory != nil {
		store, err := s.openHistory(ctx)
		if err != nil {
			return nil, err
		}
		s.history = store
	}
	return s.history, nil
}

// closeHistory closes the store permanently.
func (s *shared) closeHistory() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	store := s.history
	s.openHistory = func(context.Context) (history.Store, error) { return nil, history.ErrClosed }
	if store == nil {
		return nil
	}
	return store.Close()
}
