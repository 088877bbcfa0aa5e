// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
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
var restarts = []word[ensemble.RestartPolicy]{
	{"on_use", ensemble.RestartOnUse}, {"always", ensemble.RestartAlways}, {"never", ensemble.RestartNever},
}

// fields returns the fields that the tables of all servers have.
func (s *Supervision) fields() []field {
	return []field{
		{"connect_timeout", duration(&s.ConnectTimeout)},
		{"call_timeout", duration(&s.CallTimeout)},
		{"call_limit", duration(&s.CallLimit)},
		{"restart", wordFor(&s.Restart.Policy, restarts...)},
		{"park_after", countOrNone(&s.Restart.Tries)},
		{"park_window", duration(&s.Restart.Window)},
		{"keepalive", duration(&s.KeepAlive)},
		{"idle_disconnect", duration(&s.IdleDisconnect)},
		{"refresh", duration(&s.Refresh)},
		{"trust", choice(&s.Trust, ensemble.TrustNone, ensemble.TrustReads, ensemble.TrustAll)},
		{"max_tools", integer(&s.MaxTools, 1)},
		{"allow", each(&s.Allow, text)},
		{"deny", each(&s.Deny, text)},
		{"tools", byName(&s.Tools, override, plaintext.ToolName)},
		{"pin", directory(&s.Pin)},
		{"pin_policy", choice(&s.PinPolicy, pins.SetAside, pins.Warn, pins.Allow)},
		{"settings", free(&s.Settings)},
		{"required", boolean(&s.Required)},
		{"enabled", not(&s.Disabled)},
		{"instructions", not(&s.OmitInstructions)},
	}
}

// check validates the keys that all tables of servers have.
func (s *Supervision) check(r *reader, n *document.Node) {
	s.originate(r, n)
	s.parking(r, n)
	s.checkTools(r, n)
	if policy := n.Member("pin_policy"); policy != nil && n.Member("pin") == nil {
		r.wrongKey(policy, `the tools of this server are not pinned; set pin, such as pin = "tools.pins.json"`)
	}
}

// override is the table of one tool.
func override(o *Override) value {
	return tableOf([]field{{"name", text(&o.Name)}, {"description", text(&o.Description)}}, func(r *reader, n *document.Node) {
		if o.Name == "" && o.Description == "" {
			r.wrong(n, `expected name, description or both, such as description = "Read a file."`)
		}
	})
}

// checkTools reports two tools with the same name.
func (s *Supervision) checkTools(r *reader, n *document.Node) {
	tools := n.Member("tools")
	for name, o := range s.Tools {
		for other, p := range s.Tools {
			if o.Name != "" && o.Name == p.Name && name > other {
				r.wrong(tools.Member(name).Member("name"), "the tool %q has this name too", other)
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
func (s *Supervision) parking(r *reader, n *document.Node) {
	after, window, restart := n.Member("park_after"), n.Member("park_window"), n.Member("restart")
	if after != nil && s.Restart.Policy == ensemble.RestartNever {
		r.wrongKey(after, `with restart = "never", the first failure parks the server`)
	}
	onUse := restart == nil || s.Restart.Policy == ensemble.RestartOnUse
	counted := after == nil && !onUse || after != nil && after.Value != int64(0)
	if window != nil && (!counted || s.Restart.Policy == ensemble.RestartNever) {
		r.wrongKey(window, "failures are not counted without park_after; set park_after")
	}
}

// originate records where n is set.
func (s *Supervision) originate(r *reader, n *document.Node) {
	s.Origin = r.source.Where(n)
}
