// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/internal/serving"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/clean"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/spill"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/uiaddress"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/login"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// AssembleOptions are the options of [Assemble]. A nil pointer and the zero value of a
// field mean the default.
type AssembleOptions struct {
	// Logger receives the log entries of the model, the ensembles and the conversations.
	// Nil logs nothing. [Assemble] ignores [Config].Log; the program that creates the
	// logger applies it.
	Logger *zap.Logger
	// Ask decides about the invocations that the approval rules do not decide themselves.
	// Nil denies them.
	Ask converse.ApproveFunc
	// AskWrites lets Ask decide about the invocations that no rule matches too, except for
	// [converse.Approval].ReadOnly ones, if the configuration has no approval.default.
	// Otherwise these run without asking.
	AskWrites bool
	// Ensembles are the program's own tools. They come before the configured servers in
	// the roster, which closes them.
	Ensembles []*ensemble.Ensemble
	// Client holds the options of the client that connects to each MCP server. Server,
	// Logger and Protocol are set per server.
	Client mcpadapter.ClientOptions
	// Logins keeps the logins at servers with a table oauth; nil keeps them in memory.
	// LoginHint returns an instruction for messages that ask a person to log in at a server;
	// it may be nil.
	Logins    login.Store
	LoginHint func(server string) string
	// ForClients means that the program works for clients that are not its own user. Where
	// each client has its own login, a call of a client without identity is refused;
	// otherwise such a call uses the login of the program's user.
	ForClients bool
	// Telemetry configures traces and metrics; nil disables them. Secrets of the
	// configuration are redacted before Redact of these options is called.
	Telemetry *telemetry.Options

	// Replaceable means that the assembly may be the Previous of another.
	Replaceable bool
	// Previous is the assembly in use that the new one replaces, because its configuration
	// has changed. An ensemble whose server has not changed is the same in both, and so are
	// Roster, Audit, Logger, Redact, Telemetry, the conversation store, the accounts of the
	// budgets, and the tool converse; the keys for these, Logger and Telemetry have no
	// effect. The caller must pass Ensembles of the new assembly to [ensemble.Roster.Replace]. Without an
	// error, Close and the methods for served clients of either assembly act for the new
	// one.
	Previous *Assembly

	redact func(text string) string // nil if there are no secrets
	seen   *telemetry.Telemetry     // nil without Telemetry
	pinned map[string]*pins.File    // open pin files by path
	// loggedIn is called with the login at each server.
	loggedIn   func(client *login.Client)
	loginPages *loginpages.Pages
	logsIn     map[string]loginpages.Server // where people log in; see [Assembly].logsIn
}

// Assembly holds the parts built from a configuration. Each part may be used without the
// others, or changed before it is used.
type Assembly struct {
	// Model is nil if the configuration has no model.
	Model converse.Model
	// Models are the parts of Model: the model and its fallbacks, in their order.
	Models []converse.Model
	// Roster has the ensembles; those from the configuration are sorted by name. Nothing
	// is connected yet.
	Roster *ensemble.Roster
	// Ensembles are the ensembles of Roster; see AssembleOptions.Previous.
	Ensembles []*ensemble.Ensemble
	// Options are the options of each conversation.
	Options *converse.Options
	// Trusted holds the values of the [trusted] table. Use them for calls that the
	// program makes itself, and for an MCP client that acts for the program's own user.
	// Conversations with Options have them already.
	Trusted []invoker.Value
	// Audit records each invocation; nil if the configuration has no audit table. Options
	// contains it already.
	Audit *audit.Trail
	// Serve are the options of an MCP server for the roster. The caller must set Version.
	Serve *mcpserver.Options
	// ServeGRPC are the options of a gRPC server for the same clients. The caller must
	// set MCP to the server created with Serve.
	ServeGRPC *grpctool.ServerOptions
	// Redact removes the secrets of the configuration from a text. Use it for text that
	// did not pass through a conversation or a log of these parts, for example results of
	// [ensemble.Tool.Invoke] or a [ensemble.Snapshot]. It is never nil and may be called
	// concurrently.
	Redact func(text string) string
	// RedactPart is like Redact for a text that has arrived only in part. It returns the
	// beginning of the text, redacted, and the rest as it is, which may be the beginning of
	// a secret and belongs before the next part. After the last part the rest is empty.
	// RedactPart is never nil and may be called concurrently.
	RedactPart func(text string, last bool) (clean, held string)
	// Logger is the logger of the options with the secrets of the configuration redacted.
	// Use it for the program's own entries about the parts. It is never nil.
	Logger *zap.Logger
	// Telemetry creates the traces and the metrics; nil if they are disabled. The parts
	// use it already. Use it for calls that the program makes itself ([telemetry.With]).
	Telemetry *telemetry.Telemetry

	fallbacks *converse.ModelChain // of the model; nil if it has none
	certified []serving.Certified  // clients that are identified by a certificate
	issuer    *serve.OIDC          // of the tokens of served clients; may be nil
	closers   []func() error       // run in reverse order, after the roster is closed
	servers   []named              // without the disabled ones
	former    []named              // of assemblies before, which may still be offered
	shared    *shared

	logsIn map[string]loginpages.Server // by name, of servers; not changed after the assembly is complete
}

// Assemble builds the model, the roster and the conversation options from a
// configuration. It connects to nothing. The error reports every problem with its key. If
// the configuration was read by [Load] or [Parse], it is an [*Error] with the positions
// of the keys.
//
// The secrets of the configuration, as docs/configuration.md defines them, never appear
// in anything that the parts write to a history, an event, a log or an error.
func Assemble(config *Config, options *AssembleOptions) (*Assembly, error) {
	var o AssembleOptions
	if options != nil {
		o = *options
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if config == nil {
		config = &Config{}
	}
	assembly := newAssembly(config.secrets(), &o)
	for _, note := range config.Ignored {
		o.Logger.Warn("an entry of an imported file was skipped", logevent.ImportSkipped, zap.String("problem", note.Error()))
	}
	var err error
	for _, step := range []func(*Config, *AssembleOptions) error{
		assembly.assembleTelemetry, assembly.assembleModel, assembly.assembleRoster, assembly.assembleTrusted, assembly.assembleAudit,
		assembly.assembleOptions, assembly.assembleCompaction, assembly.assembleBudgets, assembly.assembleServe,
	} {
		err = errors.Join(err, step(config, &o))
	}
	if o.Previous == nil && config.Keeps() {
		assembly.shared.openHistory = config.OpenHistory
	}
	if err != nil {
		err = errors.Join(err, assembly.closeNew(&o), closeAll(assembly.closers))
		if o.Previous == nil {
			err = errors.Join(err, assembly.shared.close())
		}
		return nil, config.located(err, assembly.Redact)
	}
	if before := assembly.shared.latest.Swap(assembly); before != nil {
		_ = closeAll(before.closers) // running exchanges are not affected
	}
	return assembly, nil
}

// closeNew closes the ensembles that are not of the caller and not of the assembly in use.
// None is connected, but each is in the metrics until it is closed.
func (a *Assembly) closeNew(o *AssembleOptions) (err error) {
	for _, e := range a.Ensembles {
		if !slices.Contains(o.Ensembles, e) && (o.Previous == nil || !slices.Contains(o.Previous.Ensembles, e)) {
			err = errors.Join(err, e.Close(context.Background()))
		}
	}
	return err
}

// Close closes the served conversations, the roster, the conversation store and the audit
// file, and releases the resources of the model. Close your own conversations and the
// server first.
func (a *Assembly) Close(ctx context.Context) error {
	a = a.latest()
	var err error
	if tool := a.shared.tool; tool != nil {
		err = tool.Close(ctx)
	}
	err = errors.Join(err, a.Roster.Close(ctx))
	for _, e := range a.Ensembles { // one may not be in the roster yet
		err = errors.Join(err, e.Close(ctx))
	}
	return redact.Error(errors.Join(err, closeAll(a.closers), a.shared.close()), a.Redact)
}

// closeAll calls the functions in reverse order.
func closeAll(closers []func() error) error {
	var errs []error
	for _, free := range slices.Backward(closers) {
		errs = append(errs, free())
	}
	return errors.Join(errs...)
}

// assembleTelemetry creates the telemetry of the parts.
func (a *Assembly) assembleTelemetry(_ *Config, o *AssembleOptions) (err error) {
	if o.Previous != nil {
		a.Telemetry, o.seen = o.Previous.Telemetry, o.Previous.Telemetry
	}
	if o.Previous != nil || o.Telemetry == nil {
		return nil
	}
	options := *o.Telemetry
	if own := options.Redact; own == nil {
		options.Redact = o.redact
	} else if o.redact != nil {
		options.Redact = func(text string) string { return own(o.redact(text)) }
	}
	o.seen, err = telemetry.New(&options)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	a.Telemetry = o.seen
	return nil
}

func (a *Assembly) assembleRoster(config *Config, o *AssembleOptions) error {
	ensembles := slices.Clone(o.Ensembles)
	o.pinned, o.loggedIn, o.loginPages = map[string]*pins.File{}, a.shared.loggedIn, a.shared.pages
	a.logsIn = map[string]loginpages.Server{}
	o.logsIn = a.logsIn
	if o.Previous == nil && config.ConcurrentStarts > 0 {
		a.shared.starts = &ensemble.Starts{Limit: config.ConcurrentStarts}
	}
	var errs []error
	for _, server := range config.servers() {
		e, err := o.Previous.unchanged(server), error(nil)
		if e == nil {
			e, err = server.ensemble(o, a.shared.starts)
		} else if with, ok := o.Previous.logsIn[e.Name()]; ok {
			a.logsIn[e.Name()] = with
		}
		if err != nil {
			errs = append(errs, &grammar.KeyError{Key: server.path(), Origin: server.origin(), Err: err})
		} else if e != nil {
			ensembles, server.made = append(ensembles, e), e
			a.servers = append(a.servers, server)
		}
	}
	ensembles, err := config.ownTools(ensembles, o.Previous)
	errs = append(errs, err)
	roster, err := ensemble.NewRoster(ensembles...)
	a.Roster, a.Ensembles = roster, ensembles
	if o.Previous != nil {
		a.Roster = o.Previous.Roster
	}
	return errors.Join(append(errs, err)...)
}

// named is a server with its table and name.
type named struct {
	table, name string
	server      interface {
		source(name string, o *AssembleOptions) (ensemble.Source, error)
		options(o *AssembleOptions) *ensemble.Options
	}
	kept *Supervision // nil if the server is nil
	made *ensemble.Ensemble
}

func (n named) path() string { return n.table + "." + plaintext.ShowKey(n.name) }

func (n named) origin() string {
	if n.kept == nil {
		return ""
	}
	return n.kept.Origin
}

// servers returns all servers, sorted by name.
func (c *Config) servers() []named {
	kept := c.Supervised()
	var all []named
	for name, s := range c.MCP {
		all = append(all, named{"mcp", name, s, kept[name], nil})
	}
	for name, s := range c.GRPC {
		all = append(all, named{"grpc", name, s, kept[name], nil})
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.table, b.table)) })
	return all
}

// ensemble returns an ensemble for the server; nil if the server is disabled.
func (n named) ensemble(o *AssembleOptions, starts *ensemble.Starts) (*ensemble.Ensemble, error) {
	if n.kept == nil {
		return nil, errors.New("the server is nil")
	}
	if n.kept.Disabled {
		return nil, nil
	}
	source, err := n.server.source(n.name, o)
	if err = errors.Join(err, n.kept.words()); err != nil {
		return nil, err
	}
	source = clean.Source(uiaddress.Source(n.name, source), o.redact, n.kept.overrides())
	options := n.server.options(o)
	options.Starts = starts
	if options.Screen, err = n.kept.screen(n.name, o); err != nil {
		return nil, grammar.About("pin", err)
	}
	return ensemble.New(n.name, source, options), nil
}

// screen returns the function that compares tools with their pins; nil without a pin
// file.
func (s *Supervision) screen(name string, o *AssembleOptions) (func([]*invoker.Definition) map[string]error, error) {
	path := s.Pin.Reveal()
	if path == "" {
		return nil, nil
	}
	file := o.pinned[path]
	if file == nil {
		var err error
		if file, err = pins.Open(path); err != nil {
			return nil, err
		}
		o.pinned[path] = file
	}
	look := file.Screen(name, s.PinPolicy, o.Logger)
	if o.redact == nil {
		return look, nil
	}
	return func(definitions []*invoker.Definition) map[string]error {
		aside := look(definitions)
		for tool, reason := range aside { // a reason may contain the path
			aside[tool] = redact.Error(reason, o.redact)
		}
		return aside
	}, nil
}

// options converts s to the options of its ensemble.
func (s *Server) options(o *AssembleOptions) *ensemble.Options {
	options := s.Supervision.options(o)
	if options.ConnectTimeout == 0 && s.Transport == Stdio {
		options.ConnectTimeout = mcpadapter.CommandConnectTimeout
	}
	return options
}

// options returns s.Options with what [Assemble] sets.
func (s *Supervision) options(o *AssembleOptions) *ensemble.Options {
	options := s.Options
	options.Redact, options.Logger, options.Telemetry = o.redact, o.Logger, o.seen
	if settings := s.Settings.Reveal(); settings != nil {
		options.Settings = settings
	}
	return &options
}

// words reports unknown words in a server that was not read from a file.
func (s *Supervision) words() error {
	switch s.Restart.Policy {
	case "", ensemble.RestartOnUse, ensemble.RestartAlways, ensemble.RestartNever:
	default:
		return fmt.Errorf("unknown restart %q", s.Restart.Policy)
	}
	switch s.Trust {
	case "", ensemble.TrustNone, ensemble.TrustReads, ensemble.TrustAll:
	default:
		return fmt.Errorf("unknown trust %q", s.Trust)
	}
	switch s.PinPolicy {
	case "", pins.SetAside, pins.Warn, pins.Allow:
		return nil
	}
	return fmt.Errorf("unknown pin policy %q", s.PinPolicy)
}

// reveal returns the plain texts of values; nil for an empty map.
func reveal(values map[string]values.Value) map[string]string {
	if len(values) == 0 {
		return nil
	}
	texts := make(map[string]string, len(values))
	for name, value := range values {
		texts[name] = value.Reveal()
	}
	return texts
}

// assembleTrusted makes the trusted values.
func (a *Assembly) assembleTrusted(config *Config, _ *AssembleOptions) (err error) {
	a.Trusted, err = grammar.TrustedValues("trusted", config.Trusted)
	return err
}

// assembleOptions makes the options of conversations.
func (a *Assembly) assembleOptions(config *Config, o *AssembleOptions) (err error) {
	a.Options = config.Conversation.options()
	if config.Tools.searches() && a.Options.Limits.Tools == 0 {
		a.Options.Limits.Tools = -1 // what is not shown need not be few
	}
	a.Options.Trusted, a.Options.Audit = a.Trusted, a.Audit
	a.Options.Redact, a.Options.Logger, a.Options.Telemetry = o.redact, o.Logger, o.seen
	a.Options.Identity, a.Options.WaitFor = config.Conversation.Identity, config.Approval.Within
	if config.Keeps() {
		a.Options.AskDoubt = config.History.AskDoubt
	}
	a.Options.Forbid = config.Approval.Forbid()
	a.Options.Approve, err = config.Approval.approveFunc(o.Ask, config.Keeps(), o.AskWrites)
	return err
}

// options converts c to [converse.Options].
func (c *Conversation) options() *converse.Options {
	options := &converse.Options{Instructions: c.Instructions, Limits: c.Limits}
	if folder := c.Spill.Reveal(); folder != "" {
		options.Spill = spill.NewFolder(folder).Keep
	}
	return options
}
