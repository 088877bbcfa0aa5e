// SPDX-License-Identifier: Apache-2.0

//go:build !noconsole

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/console"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// HasConsole reports whether this program has the console.
const HasConsole = true

// offerConsole mounts the console next to MCP over HTTP. The function opened is called with
// the address where it is served. The caller must call stop.
func (s *server) offerConsole(ctx context.Context, servers *servers) (opened func(address string), stop func(), err error) {
	settings := s.settings
	if settings.HTTP.Reveal() == "" || !identifies(settings) && s.Console == nil {
		s.web.offers("the console only to clients with tokens (serve.clients); consort console opens it on this machine")
		return func(string) {}, func() {}, nil
	}
	p := &consoleParts{of: s, servers: servers, pinned: map[string]*pins.File{}}
	options, err := p.options(ctx)
	if err != nil {
		return nil, nil, err
	}
	pages := console.New(options)
	s.web.mux.Handle(console.Prefix, pages)
	s.web.mux.Handle(console.Prefix+"/", pages)
	s.web.mux.Handle("/{$}", http.RedirectHandler(console.Prefix+"/", http.StatusSeeOther))
	s.web.offers("the console at " + console.Prefix)
	return func(address string) {
		if s.Console == nil {
			s.Screen.Note("console at %s%s/, for people with a token", address, console.Prefix)
			return
		}
		s.Console.Open(address + pages.Link(s.Console.Token))
	}, pages.Close, nil
}

// consoleParts are the parts of a server that the console shows.
type consoleParts struct {
	of      *server
	servers *servers

	mu     sync.Mutex
	pinned map[string]*pins.File // by path; guarded by mu
}

func (p *consoleParts) options(ctx context.Context) (o console.Options, err error) {
	o = console.Options{
		Identify: func(next http.Handler) http.Handler { return p.servers.mcp.Identify(listening.Finished{Handler: next}) }, Tokens: func() bool { return p.of.Console == nil && identifies(p.servers.settings.Load()) }, Caller: p.caller,
		Engine: p.of.engine, Runs: p.runs, Active: p.active(), Begin: p.begin,
		Roster: p.of.Assembly.Roster, Select: p.selection, Trust: p.trust, Call: p.call, Shown: p.shown, Pins: p.pins,
		Login: func(name string) loginpages.Kind { return p.of.logins.Kind(name) }, OpenLogin: p.openLogin,
		LoginCommand: func(name string) string { return p.of.Location.CommandLine("login " + display.Word(name)) },
		TraceURL:     func() string { return p.servers.settings.Load().TraceURL.Reveal() },
		Budget:       func() *budget.Policy { return p.servers.assembly.Load().Options.Budget },
		Audit:        p.of.Assembly.Audit, Records: p.records, Redact: p.of.Assembly.Redact, RedactPart: p.of.Assembly.RedactPart, Logger: p.of.Assembly.Logger,
	}
	if p.of.api != nil {
		o.Feed = p.of.api.feed
		if p.of.Console == nil {
			o.Admit = p.of.api.admit(p.servers.mcp)
		}
	}
	if p.of.Config.Keeps() {
		store, err := p.of.Assembly.History(ctx)
		if err != nil {
			return o, p.of.Location.OpenError(err)
		}
		if o.Store = store; p.of.Console == nil {
			scope, err := p.of.Location.Scope()
			if err != nil {
				return o, err
			}
			if scope != "" { // the store has conversations of others too
				o.Store = clientsOf{histories.ClientsOnly{Store: store, Scope: scope}}
			}
		}
	}
	if p.servers.reload != nil {
		o.Reload = p.reloaded
	}
	_, err = p.pins()
	return o, err
}

// openLogin begins the login of a person at a server. It goes on as long as may returns nil.
func (p *consoleParts) openLogin(w http.ResponseWriter, r *http.Request, name string, may func() error) (path string, err error) {
	visit := loginpages.Visit{Server: name, Client: access.NameFrom(r.Context()), Back: console.Prefix + "/", May: may}
	if p.of.Console != nil || p.of.logins.Kind(name) == loginpages.Shared { // not after the login of one client
		visit.Done = func(ctx context.Context) { p.connectAfterLogin(ctx, name) }
	}
	return p.of.logins.Open(w, r, visit)
}

// connectAfterLogin connects a server that waits for the login of the gateway. It does not
// revive one that an operator has parked.
func (p *consoleParts) connectAfterLogin(ctx context.Context, name string) {
	e, ok := p.of.Assembly.Roster.Ensemble(name)
	if !ok || e.Snapshot().State != ensemble.NeedsLogin {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	_ = e.Refresh(ctx) // the console shows what happened
}

// connectTime bounds how long a page waits for the connection after a login.
const connectTime = 10 * time.Second

// pins returns the files of pinned tools of the newest configuration. It opens each once.
func (p *consoleParts) pins() (files []*pins.File, err error) {
	paths := map[string]bool{}
	for _, server := range cmp.Or(p.servers.config.Load(), p.of.Config).Supervised() {
		if path := server.Pin.Reveal(); path != "" {
			paths[path] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		file := p.pinned[path]
		if file == nil {
			if file, err = pins.Open(path); err != nil {
				return nil, err
			}
			p.pinned[path] = file
		}
		files = append(files, file)
	}
	return files, nil
}

// caller returns the person of a request. The person who started the process has the role operate.
func (p *consoleParts) caller(ctx context.Context) (who console.Caller, err error) {
	if p.of.Console != nil {
		who = console.Caller{Name: "console", Role: console.Operate}
		if known, err := user.Current(); err == nil {
			who.Name = known.Username
		}
		return who, nil
	}
	who = console.Caller{Name: access.NameFrom(ctx), Role: roleOf(p.servers.settings.Load(), access.MeasuredFrom(ctx)), Identity: access.IdentityFrom(ctx)}
	if p.of.store == nil {
		return who, nil
	}
	known, err := p.of.Assembly.OwnerOf(ctx)
	if err != nil { // a value that identifies the owner is missing: the person has no conversations
		return who, nil
	}
	who.Owner = p.of.store.Owner(known)
	return who, nil
}

// runs reports whether the engine may continue a conversation: one of a client, or, in the
// console of the person who started the process, one of that person.
func (p *consoleParts) runs(info history.Info) bool {
	return p.of.store != nil && (strings.HasPrefix(info.Owner, p.of.store.Owner("")) || p.of.Console != nil && info.Owner == "")
}

// active returns the function that reports whether the engine continues a conversation by itself; nil if it
// does not know.
func (p *consoleParts) active() func(conversation string) bool {
	if local, ok := p.of.engine.(*engine.Local); ok {
		return local.Active
	}
	return nil
}

func (p *consoleParts) begin(ctx context.Context, conversation string, message canister.User) error {
	if p.of.store == nil {
		return errors.New("this server runs no conversations")
	}
	return engine.Post(ctx, p.of.store, p.of.open, conversation, message, time.Now())
}

func (p *consoleParts) selection(ctx context.Context) *ensemble.Selection {
	if choose := p.servers.assembly.Load().Serve.Select; choose != nil && p.of.Console == nil {
		return choose(ctx)
	}
	return nil
}

func (p *consoleParts) shown(catalog *ensemble.Catalog) ([]*ensemble.Tool, []ensemble.Aside) {
	assembly := p.servers.assembly.Load()
	return converse.Offer(catalog, assembly.Model, assembly.Options.Limits.Tools)
}

func (p *consoleParts) records() string {
	if p.of.Config.Audit == nil {
		return ""
	}
	return p.of.Config.Audit.File.Reveal()
}

// trust adds the trusted values of the person who started the process; clients have their own.
func (p *consoleParts) trust(ctx context.Context) context.Context {
	if p.of.Console != nil {
		ctx = invoker.WithTrusted(ctx, p.servers.assembly.Load().Trusted...)
	}
	return ctx
}

// call calls a tool as the server does for a client.
func (p *consoleParts) call(ctx context.Context, tool *ensemble.Tool, arguments json.RawMessage) (output invoker.Output, err error) {
	assembly, definition := p.servers.assembly.Load(), tool.Definition()
	ctx = p.trust(ctx)
	call := &invoker.Call{ID: servedcall.ID("console", "", ""), Arguments: arguments}
	record := audit.Record{
		Time: time.Now(), Asker: "console", ClientName: access.NameFrom(ctx), Invocation: call.ID,
		Ensemble: tool.Ensemble().Name(), Tool: definition.Name, Arguments: arguments,
	}
	invoke := assembly.Serve.Invoke
	if invoke == nil {
		invoke = func(ctx context.Context, call *mcpserver.ToolCall) (invoker.Output, error) { return call.Make(ctx) }
	}
	output, err = invoke(ctx, &mcpserver.ToolCall{Tool: tool, Item: servedcall.Item(tool, nil), Call: call, Record: &record})
	servedcall.Account{Audit: assembly.Audit, Log: assembly.Logger}.Keep(ctx, &record, definition.Name, output.Content, invoker.AsFailure(err))
	return output, err
}

// reloaded reads the configuration again and says what changed.
func (p *consoleParts) reloaded(ctx context.Context) (string, error) {
	outcome := p.servers.reload(ctx)
	if outcome.Error != "" {
		return "", errors.New(outcome.Error)
	}
	var changes []string
	for _, of := range []struct {
		what  string
		names []string
	}{{"added", outcome.Added}, {"removed", outcome.Removed}, {"changed", outcome.Changed}, {"keys", outcome.Keys}, {"needs a restart", outcome.NeedsRestart}} {
		if len(of.names) > 0 {
			changes = append(changes, fmt.Sprintf("%s: %s", of.what, strings.Join(of.names, ", ")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outcome.Away)) {
		changes = append(changes, fmt.Sprintf("%s cannot be connected: %s", name, outcome.Away[name]))
	}
	return "The configuration was read. " + cmp.Or(strings.Join(changes, "; "), "Nothing has changed."), nil
}

// clientsOf is the part of a shared store that operators of this server may see: the
// conversations of its clients, and the approvals of clients' calls.
type clientsOf struct{ histories.ClientsOnly }

func (s clientsOf) shows(info history.Info) bool {
	return strings.HasPrefix(info.Owner, s.Owner("")) || clientcalls.IsApproval(info)
}

// Info implements [history.Store].
func (s clientsOf) Info(ctx context.Context, conversation string) (history.Info, error) {
	info, err := s.Store.Info(ctx, conversation)
	if err == nil && !s.shows(info) {
		return history.Info{}, history.ErrNotFound
	}
	return info, err
}

// List implements [history.Store].
func (s clientsOf) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return histories.ListOnly(ctx, s.Store, filter, s.shows)
}

// roleOf returns the role of a client. No client has one if clients are not identified.
func roleOf(settings *serve.Options, client string) console.Role {
	if !identifies(settings) {
		return console.Nothing
	}
	role := cmp.Or(settings.Console, "read")
	for _, one := range settings.Clients {
		if client != "" && one.Name == client {
			role = cmp.Or(one.Console, role)
		}
	}
	return console.Roles[role]
}
