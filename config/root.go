// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"time"

	"github.com/consort-go/consort/converse/budget"
)

// fields returns the grammar of the whole file.
func (c *Config) fields() []field {
	return []field{
		{"model", optional(&c.Model, func(m *Model) value { return tableOf(m.fields(), m.check) })},
		{"conversation", tableOf(c.Conversation.fields(), nil)},
		{"compaction", optional(&c.Compaction, func(c *Compaction) value { return tableOf(c.fields(), c.check) })},
		{"budgets", optional(&c.Budgets, func(p *budget.Policy) value { return tableOf(budgetFields(p), nil) })},
		{"approval", tableOf(c.Approval.fields(), nil)},
		{"mcp", byName(&c.MCP, server, serverName)},
		{"grpc", byName(&c.GRPC, grpcServer, serverName)},
		{"concurrent_starts", integer(&c.ConcurrentStarts, 1)},
		{"public_variables", each(&c.PublicVariables, environmentName)},
		{"import", each(&c.Import, text)},
		{"tools", tableOf([]field{{"resources", boolean(&c.Tools.Resources)}}, c.Tools.check)},
		{"trusted", trustedTable(&c.Trusted)},
		{"audit", optional(&c.Audit, func(a *Audit) value { return tableOf(a.fields(), a.check) })},
		{"history", optional(&c.History, func(h *History) value { return tableOf(h.fields(), h.check) })},
		{"serve", optional(&c.Serve, func(s *Serve) value {
			return tableOf(s.fields(), func(r *reader, n *node) { s.check(r, n, n.parent.member("model") != nil) })
		})},
		{"log", tableOf([]field{
			{"level", choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError)},
			{"format", wordFor(&c.Log.JSON, word[bool]{"console", false}, word[bool]{"json", true})},
		}, nil)},
	}
}

// check reports a server that has the same name as the ensemble of these tools.
func (t *Tools) check(r *reader, n *node) {
	for _, key := range []string{"mcp", "grpc"} {
		servers := n.parent.member(key)
		if !t.Resources || servers == nil || servers.member(resourceTools) == nil {
			continue
		}
		r.add(r.problem(n.member("resources").keyAt, n.under("resources"), "these tools are offered under the name %q, which a server here already has; rename that server", resourceTools))
	}
}

func (c *Conversation) fields() []field {
	return []field{
		{"instructions", text(&c.Instructions)},
		{"exchanges", integer(&c.Exchanges, 1)},
		{"time", duration(&c.Time)},
		{"tokens", integer(&c.Tokens, 1)},
		{"parallel", integer(&c.Parallel, 1)},
		{"final_answer", boolean(&c.FinalAnswer)},
		{"result_bytes", integer(&c.ResultBytes, 1)},
		{"spill", directory(&c.Spill)},
		{"tools", integer(&c.Tools, 1)},
		{"identity", each(&c.Identity, text)},
	}
}

func (a *Approval) fields() []field {
	return []field{
		{"default", choice(&a.Default, ActionAllow, ActionDeny, ActionAsk, ActionDefer)},
		{"within", duration(&a.Within)},
		{"rules", each(&a.Rules, func(rule *Rule) value { return tableOf(rule.fields(), rule.check) })},
	}
}

func (rule *Rule) fields() []field {
	return []field{
		{"action", choice(&rule.Action, ActionAllow, ActionDeny, ActionAsk, ActionDefer)},
		{"reason", text(&rule.Reason)},
		{"within", duration(&rule.Within)},
		{"who", text(&rule.Who)},
		{"ensembles", each(&rule.Ensembles, text)},
		{"tools", each(&rule.Tools, text)},
		{"read_only", optional(&rule.ReadOnly, boolean)},
		{"idempotent", optional(&rule.Idempotent, boolean)},
		{"destructive", optional(&rule.Destructive, boolean)},
		{"open_world", optional(&rule.OpenWorld, boolean)},
	}
}

func (rule *Rule) check(r *reader, n *node) {
	if n.member("action") == nil {
		r.missing(n, "action", `missing: expected "allow", "deny", "ask" or "defer"`)
	}
	if reason := n.member("reason"); reason != nil && rule.Action != ActionDeny && rule.Action != "" {
		r.add(r.problem(reason.keyAt, reason.path(), `only a rule with action = "deny" gives a reason`))
	}
	for _, key := range []string{"within", "who"} {
		if stray := n.member(key); stray != nil && rule.Action != ActionDefer && rule.Action != "" {
			r.add(r.problem(stray.keyAt, stray.path(), `only for a rule with action = "defer"`))
		}
	}
}

// headerValue is a secret that is valid in an HTTP header.
func headerValue(to *Value) value {
	v := secret(to)
	return value{kind: v.kind, read: func(r *reader, n *node) {
		v.read(r, n)
		if strings.ContainsFunc(to.Reveal(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.wrong(n, "expected a value for an HTTP header, which holds no line breaks or other control characters")
		}
	}}
}

// headerName is a token of RFC 9110, section 5.6.2.
func headerName(name string) string {
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (c > '~' || !strings.ContainsRune("!#$%&'*+-.^_`|~", c)) {
			return "expected the name of an HTTP header"
		}
	}
	if name == "" {
		return "expected the name of an HTTP header, not an empty one"
	}
	return ""
}

// environmentName is the name of an environment variable, as in ${NAME}.
func environmentName(to *string) value {
	return value{kind: "a string", read: func(r *reader, n *node) {
		text(to).read(r, n)
		if *to != "" && !isName(*to) {
			r.wrong(n, "expected the name of an environment variable: letters, digits and _")
		}
	}}
}

func variableName(name string) string {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "expected the name of an environment variable"
	}
	return ""
}

// protocolVersion is a version of MCP, which is a date.
func protocolVersion(to *string) value {
	const kind = `a protocol version such as "2025-11-25", in quotes`
	return value{kind: "a protocol version", read: func(r *reader, n *node) {
		s, ok := n.value.(string)
		if !ok {
			r.wrongKind(n, kind)
			return
		}
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			r.wrong(n, "expected %s", kind)
			return
		}
		*to = s
	}}
}

func serverName(name string) string {
	if strings.TrimSpace(name) == "" {
		return "expected a name for the server, not an empty one"
	}
	return ""
}
