// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/serving"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/resourcetools"
	"github.com/consort-go/consort/internal/findcall"
)

// Tools configures how tools are offered, and tools in addition to those of the servers.
type Tools struct {
	// Resources offers a model two tools that list and read the resources of
	// all servers.
	Resources bool
	// Code offers a model the tool run_code: programs that call the other tools.
	Code bool
	// Mode is "all", "search" or "auto", and empty means all. With "search" a model is shown
	// only Pinned, and two tools that find and call the others. "auto" does that if the
	// definitions of all tools take more than Share of the model's window, or if they
	// are more than its API takes.
	Mode string
	// Pinned are globs for the names of tools that are shown in any case, also to served
	// clients that find the others.
	Pinned []string
	// Share is more than 0, and at most 1; 0 means 0.1. The window is that of Compaction, or
	// 128,000 tokens.
	Share float64
}

// The modes of [Tools].
const (
	allTools    = "all"
	searchTools = "search"
	autoTools   = "auto"
)

// The names of the ensembles of these tools.
const (
	resourceTools = "resources"
	findTools     = "tools"
	codeTools     = "code"
)

// usualWindow is the window of a model that is not configured, in tokens.
const usualWindow = 128_000

const usualShare = 0.1

func (t *Tools) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("resources", grammar.Boolean(&t.Resources)),
		grammar.Key("code", grammar.Boolean(&t.Code)),
		grammar.Key("mode", grammar.Choice(&t.Mode, allTools, searchTools, autoTools)),
		grammar.Key("pinned", grammar.Each(&t.Pinned, grammar.Text)),
		grammar.Key("share", grammar.Number(&t.Share, 0, 1)),
	}
}

// searches reports whether tools are found, at least sometimes.
func (t *Tools) searches() bool { return t.Mode == searchTools || t.Mode == autoTools }

func (t *Tools) check(r *grammar.Reader, n *document.Node) {
	for _, key := range []string{"mcp", "grpc"} {
		servers := n.Parent.Member(key)
		if servers == nil {
			continue
		}
		const taken = "these tools are offered under the name %q, which a server here already has; rename that server"
		if t.Resources && servers.Member(resourceTools) != nil {
			r.WrongKey(n.Member("resources"), taken, resourceTools)
		}
		if t.Code && servers.Member(codeTools) != nil {
			r.WrongKey(n.Member("code"), taken, codeTools)
		}
		if t.searches() && servers.Member(findTools) != nil {
			r.WrongKey(n.Member("mode"), taken, findTools)
		}
	}
	if pinned := n.Member("pinned"); pinned != nil && !t.searches() && n.Parent.Member("serve") == nil {
		r.WrongKey(pinned, `all tools are shown; set mode = "search" or mode = "auto"`)
	}
	share := n.Member("share")
	switch {
	case share == nil:
	case t.Mode != autoTools:
		r.WrongKey(share, `only for mode = "auto"`)
	case t.Share == 0:
		r.WrongKey(share, `expected a number above 0; to show no tools but the pinned ones, set mode = "search"`)
	}
}

// findOptions returns the options of models that find tools, or nil if they are shown all.
func (c *Config) findOptions() *findtools.Options {
	if !c.Tools.searches() {
		return nil
	}
	options := &findtools.Options{Tools: findTools, Pinned: slices.Concat(c.Tools.Pinned, c.Approval.names())}
	if c.Tools.Code {
		options.Pinned = append(options.Pinned, ensemble.NameFor(codeTools, runcode.Name))
	}
	if c.Tools.Mode == autoTools {
		window, share := int64(usualWindow), c.Tools.Share
		if c.Compaction != nil && c.Compaction.Window > 0 {
			window = c.Compaction.Window
		}
		if share == 0 {
			share = usualShare
		}
		options.Above = max(1, int64(share*float64(window)))
	}
	return options
}

// names returns the tools that rules name in full, with their ensembles, and do not deny.
func (a *Approval) names() (names []string) {
	isGlob := func(name string) bool { return strings.ContainsAny(name, "*?") }
	for _, rule := range a.Rules {
		for _, server := range rule.Ensembles {
			for _, tool := range rule.Tools {
				if rule.Action != ActionDeny && !isGlob(server) && !isGlob(tool) {
					names = append(names, ensemble.NameFor(server, tool))
				}
			}
		}
	}
	return names
}

// finding returns the model, or one that finds tools, as the configuration says.
func (c *Config) finding(model converse.Model) converse.Model {
	if options := c.findOptions(); options != nil {
		return findtools.New(model, options)
	}
	return model
}

// ownTools returns the ensembles and those of the configured tools, which follow them.
func (c *Config) ownTools(ensembles []*ensemble.Ensemble, previous *Assembly) ([]*ensemble.Ensemble, error) {
	add := func(name string, tools func(string, ...*ensemble.Ensemble) (*ensemble.Ensemble, error)) error {
		if same := previous.following(ensembles, name); same != nil {
			ensembles = append(ensembles, same)
			return nil
		}
		made, err := tools(name, ensembles...)
		if err == nil {
			ensembles = append(ensembles, made)
		}
		return err
	}
	if c.Tools.Resources {
		if err := add(resourceTools, resourcetools.New); err != nil {
			return ensembles, err
		}
	}
	if c.Tools.searches() {
		if err := add(findTools, findtools.Ensemble); err != nil {
			return ensembles, err
		}
	}
	if c.Tools.Code {
		err := add(codeTools, func(name string, _ ...*ensemble.Ensemble) (*ensemble.Ensemble, error) {
			return runcode.Ensemble(name, &runcode.Options{Without: []string{ensemble.NameFor(findTools, findcall.CallName)}}), nil
		})
		if err != nil {
			return ensembles, err
		}
	}
	return ensembles, nil
}

// following returns the ensemble of that name that a has right after these ensembles, or
// nil.
func (a *Assembly) following(ensembles []*ensemble.Ensemble, name string) *ensemble.Ensemble {
	n := len(ensembles)
	if a == nil || len(a.Ensembles) <= n || a.Ensembles[n].Name() != name || !slices.Equal(a.Ensembles[:n], ensembles) {
		return nil
	}
	return a.Ensembles[n]
}

// forClients describes the tools for the rules about clients.
func (t *Tools) forClients() serving.Tools {
	tools := serving.Tools{ReachOthers: t.reachesOthers, Pinned: t.Pinned}
	if t.searches() || t.Code {
		tools.Withheld = t.isForModels
	}
	return tools
}

// isForModels reports whether an item is find_tools, call_tool or run_code of the model.
// Clients do not get them: they find tools in the profile search, and programs run only in
// conversations.
func (t *Tools) isForModels(item *ensemble.Item) bool {
	return t.searches() && item.Ensemble == findTools || t.Code && item.Ensemble == codeTools
}

// reachesOthers reports whether an item is a tool through which other items are reached,
// whatever the rules say about them: converse, and the tools that read resources.
func (t *Tools) reachesOthers(item *ensemble.Item) bool {
	switch item.Ensemble {
	case "":
		return true
	case resourceTools:
		return t.Resources
	}
	return false
}
