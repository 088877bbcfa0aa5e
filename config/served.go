// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/serving"
	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/config/internal/settings"
	"github.com/consort-go/consort/config/internal/storeledger"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
)

// OwnerPrefix begins the [history.Info.Owner] of conversations of served clients, as
// [Assembly.OwnerOf] creates it.
const OwnerPrefix = "served-"

// OwnerOf returns an owner name for the caller's conversations. It is derived from the
// trusted values of ctx that [Conversation].Identity names, and does not reveal them. Callers
// that have neither a name nor trusted values are one owner. A caller that has a name or
// trusted values, but none that Identity names, gets an [invoker.Failure] with the code
// DENIED.
func (a *Assembly) OwnerOf(ctx context.Context) (string, error) {
	names := a.latest().Options.Identity
	has := func(name string) bool { _, ok := invoker.TrustedValue(ctx, name); return ok }
	isKnown := access.NameFrom(ctx) != "" || len(invoker.TrustedFrom(ctx)) > 0
	if names != nil && isKnown && !slices.ContainsFunc(names, has) {
		var shown []string
		for _, name := range names {
			shown = append(shown, plaintext.ShowKey(name))
		}
		return "", invoker.Failf(invoker.Denied, "The caller cannot have conversations: it has none of the trusted values that identify a user (conversation.identity: %s).", strings.Join(shown, ", "))
	}
	owner, err := agenttool.OwnerOf(ctx, names)
	return OwnerPrefix + owner, err
}

// ownTool is the tool converse for conversations that are not stored. A caller whose owner is
// not known cannot call it.
type ownTool struct {
	*agenttool.Tool
	owner func(context.Context) (string, error)
}

// Invoke implements [invoker.Invoker].
func (t ownTool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	if _, err := t.owner(ctx); err != nil {
		return invoker.Output{}, err
	}
	return t.Tool.Invoke(ctx, call)
}

// OpenServed returns a function that creates the conversations of served clients. Their
// trusted values come with each turn and not from the person who runs the
// program. log stores the conversations; nil keeps them in memory.
func (a *Assembly) OpenServed(log history.Log) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		a := a.latest()
		options := *a.Options
		options.ID, options.Trusted, options.Log = id, nil, log
		return converse.New(a.Model, a.Roster, &options), nil
	}
}

// ServedLimits returns the limits of the conversations that OpenServed creates now. A reload
// may change them.
func (a *Assembly) ServedLimits() converse.Limits { return a.latest().Options.Limits }

// assembleServe makes the options of the servers.
func (a *Assembly) assembleServe(config *Config, o *AssembleOptions) error {
	s := config.Serve
	if s == nil {
		s = &serve.Options{}
	}
	with := &serving.Options{
		Roster: a.Roster, Tools: config.Tools.forClients(), Trusted: a.Trusted, Audit: a.Audit, Logger: o.Logger, Telemetry: o.seen,
		Calls: clientcalls.Rules{Store: a.History, Address: a.addressOf, Logger: a.Logger, Ledger: a.clientLedger, Others: config.Others(false)},
		Gate:  a.shared.gate, Issuer: &a.shared.issuer,
	}
	var err error
	switch {
	case s.Converse && config.Model == nil:
		err = grammar.About("serve.converse", errors.New("conversations need a model"))
	case s.Converse && !config.Keeps():
		with.Own, err = a.conversations(o)
	}
	made, problems := serving.New(s, with)
	a.issuer = s.OIDC
	a.Serve, a.ServeGRPC, a.certified = made.MCP, made.GRPC, made.Certified
	return errors.Join(problems, err)
}

// conversations returns the tool converse. Its conversations use the trusted values of the
// caller, not of the person who runs the program.
func (a *Assembly) conversations(o *AssembleOptions) (_ []invoker.Invoker, err error) {
	if o.Previous == nil {
		a.shared.tool, err = agenttool.New(a.OpenServed(nil), &agenttool.Options{Identity: a.Options.Identity, Logger: o.Logger})
	}
	return []invoker.Invoker{ownTool{a.shared.tool, a.OwnerOf}}, grammar.About("serve.converse", err)
}

// clientLedger returns the ledger for the calls of clients.
func (a *Assembly) clientLedger() budget.Ledger {
	if a.shared.openHistory != nil {
		return storeledger.New(a.History)
	}
	return a.shared.calls
}

// addressOf identifies the server of an ensemble of this assembly, or of one before, whose
// ensembles are offered until the new ones are connected.
func (a *Assembly) addressOf(e *ensemble.Ensemble) (address string, ok bool) {
	for _, n := range slices.Concat(a.servers, a.former) {
		if n.made != e {
			continue
		}
		place := ""
		if s, ok := n.server.(*Server); ok && s.Transport == Stdio && !filepath.IsAbs(s.Directory.Reveal()) {
			place, _ = os.Getwd() // without one, the settings decide
		}
		return settings.Text(n.server, place), true
	}
	return "", false
}

// Explain reports whether a served client may use an item, and why: the element of a list,
// or the rule, with its position in the file. client is empty for the clients without a
// name, and for the one over standard input and output. It returns an error if no client
// has the name, and none can have it. trusted are the trusted values of the client, by name,
// in the form that encoding/json decodes; nil means those of the configuration.
func (c *Config) Explain(client string, trusted map[string]any, item ensemble.Item) (allowed bool, why string, err error) {
	options := c.Serve
	if options == nil {
		options = &serve.Options{}
	}
	return serving.Explain(options, c.Tools.forClients(), client, trusted, item, c.placeOf)
}

// placeOf returns a key with its file and line, if the configuration was read from a file.
func (c *Config) placeOf(key string) string {
	n := c.find(key)
	if n == nil {
		return key
	}
	in := c.source.Of(n)
	line, _ := in.Position(n.At)
	return fmt.Sprintf("%s (%s:%d)", key, in.Name, line)
}
