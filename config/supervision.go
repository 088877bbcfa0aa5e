// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/internal/overrides"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
)

// Supervised returns the supervision of each server in [Config.MCP] and [Config.GRPC], by
// name.
func (c *Config) Supervised() map[string]*Supervision {
	kept := make(map[string]*Supervision, len(c.MCP)+len(c.GRPC))
	for name, s := range c.MCP {
		if s != nil {
			kept[name] = &s.Supervision
		}
	}
	for name, s := range c.GRPC {
		if s != nil {
			kept[name] = &s.Supervision
		}
	}
	return kept
}

// restarts are the words for the policies.
var restarts = []grammar.Word[ensemble.RestartPolicy]{
	grammar.Means("on_use", ensemble.RestartOnUse), grammar.Means("always", ensemble.RestartAlways), grammar.Means("never", ensemble.RestartNever),
}

// fields returns the fields that the tables of all servers have.
func (s *Supervision) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("connect_timeout", grammar.Duration(&s.ConnectTimeout)),
		grammar.Key("call_timeout", grammar.Duration(&s.CallTimeout)),
		grammar.Key("call_limit", grammar.Duration(&s.CallLimit)),
		grammar.Key("restart", grammar.WordFor(&s.Restart.Policy, restarts...)),
		grammar.Key("park_after", grammar.CountOrNone(&s.Restart.Tries)),
		grammar.Key("park_window", grammar.Duration(&s.Restart.Window)),
		grammar.Key("keepalive", grammar.Duration(&s.KeepAlive)),
		grammar.Key("idle_disconnect", grammar.Duration(&s.IdleDisconnect)),
		grammar.Key("refresh", grammar.Duration(&s.Refresh)),
		grammar.Key("trust", grammar.Choice(&s.Trust, ensemble.TrustNone, ensemble.TrustReads, ensemble.TrustAll)),
		grammar.Key("max_tools", grammar.Integer(&s.MaxTools, 1)),
		grammar.Key("allow", grammar.Each(&s.Allow, grammar.Text)),
		grammar.Key("deny", grammar.Each(&s.Deny, grammar.Text)),
		grammar.Key("tools", grammar.ByName(&s.Tools, override, plaintext.ToolName)),
		grammar.Key("pin", grammar.Path(&s.Pin)),
		grammar.Key("pin_policy", grammar.Choice(&s.PinPolicy, pins.SetAside, pins.Warn, pins.Allow)),
		grammar.Key("settings", grammar.Free(&s.Settings)),
		grammar.Key("required", grammar.Boolean(&s.Required)),
		grammar.Key("enabled", grammar.Not(&s.Disabled)),
		grammar.Key("instructions", grammar.Not(&s.OmitInstructions)),
	}
}

// check validates the keys that all tables of servers have.
func (s *Supervision) check(r *grammar.Reader, n *document.Node) {
	s.originate(r, n)
	s.parking(r, n)
	s.checkTools(r, n)
	r.EmptyLists(n, "allow")
	if policy := n.Member("pin_policy"); policy != nil && n.Member("pin") == nil {
		r.WrongKey(policy, `the tools of this server are not pinned; set pin, such as pin = "tools.pins.json"`)
	}
}

// override is the table of one tool.
func override(o *Override) grammar.Kind {
	return grammar.Table([]grammar.Field{grammar.Key("name", grammar.Text(&o.Name)), grammar.Key("description", grammar.Text(&o.Description))}, func(r *grammar.Reader, n *document.Node) {
		if o.Name == "" && o.Description == "" {
			r.Wrong(n, `expected name, description or both, such as description = "Read a file."`)
		}
	})
}

// checkTools reports two tools with the same name.
func (s *Supervision) checkTools(r *grammar.Reader, n *document.Node) {
	tools := n.Member("tools")
	for name, o := range s.Tools {
		for other, p := range s.Tools {
			if o.Name != "" && o.Name == p.Name && name > other {
				r.Wrong(tools.Member(name).Member("name"), "the tool %q has this name too", other)
			}
		}
	}
}

// overrides returns the function that overrides names and descriptions of tools; nil without
// any.
func (s *Supervision) overrides() func(ensemble.Listing) ensemble.Listing {
	if len(s.Tools) == 0 {
		return nil
	}
	return func(listing ensemble.Listing) ensemble.Listing { return overrides.Apply(listing, s.Tools) }
}

// parking reports keys about counting failures that have no effect.
func (s *Supervision) parking(r *grammar.Reader, n *document.Node) {
	after, window, restart := n.Member("park_after"), n.Member("park_window"), n.Member("restart")
	if after != nil && s.Restart.Policy == ensemble.RestartNever {
		r.WrongKey(after, `with restart = "never", the first failure parks the server`)
	}
	onUse := restart == nil || s.Restart.Policy == ensemble.RestartOnUse
	counted := after == nil && !onUse || after != nil && after.Value != int64(0)
	if window != nil && (!counted || s.Restart.Policy == ensemble.RestartNever) {
		r.WrongKey(window, "failures are not counted without park_after; set park_after")
	}
}

// originate records where n is set.
func (s *Supervision) originate(r *grammar.Reader, n *document.Node) {
	s.Origin = r.Source.Where(n)
}
