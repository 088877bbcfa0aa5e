// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
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
		{"mcp", byName(&c.MCP, server, plaintext.ServerName)},
		{"grpc", byName(&c.GRPC, grpcServer, plaintext.ServerName)},
		{"logins", tableOf(c.Logins.fields(), nil)},
		{"concurrent_starts", integer(&c.ConcurrentStarts, 1)},
		{"public_variables", each(&c.PublicVariables, environmentName)},
		{"import", each(&c.Import, text)},
		{"tools", tableOf(c.Tools.fields(), c.Tools.check)},
		{"trusted", trustedTable(&c.Trusted)},
		{"audit", optional(&c.Audit, func(a *Audit) value { return tableOf(a.fields(), a.check) })},
		{"history", optional(&c.History, func(h *History) value { return tableOf(h.fields(), h.check) })},
		{"serve", optional(&c.Serve, func(s *Serve) value {
			return tableOf(s.fields(), func(r *reader, n *document.Node) { s.check(r, n, n.Parent.Member("model") != nil) })
		})},
		{"log", tableOf([]field{
			{"level", choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError)},
			{"format", wordFor(&c.Log.JSON, word[bool]{"console", false}, word[bool]{"json", true})},
		}, nil)},
	}
}
