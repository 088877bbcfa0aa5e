// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/config/internal/serving"
	"github.com/consort-go/consort/converse/budget"
)

// fields returns the grammar of the whole file.
func (c *Config) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("model", grammar.Optional(&c.Model, func(m *Model) grammar.Kind { return grammar.Table(m.fields(), m.check) })),
		grammar.Key("conversation", grammar.Table(c.Conversation.fields(), nil)),
		grammar.Key("compaction", grammar.Optional(&c.Compaction, func(c *Compaction) grammar.Kind { return grammar.Table(c.fields(), c.check) })),
		grammar.Key("budgets", grammar.Optional(&c.Budgets, func(p *budget.Policy) grammar.Kind { return grammar.Table(budgetFields(p), nil) })),
		grammar.Key("approval", grammar.Table(c.Approval.fields(), nil)),
		grammar.Key("mcp", grammar.ByName(&c.MCP, server, plaintext.ServerName)),
		grammar.Key("grpc", grammar.ByName(&c.GRPC, grpcServer, plaintext.ServerName)),
		grammar.Key("logins", grammar.Table(c.Logins.fields(), nil)),
		grammar.Key("concurrent_starts", grammar.Integer(&c.ConcurrentStarts, 1)),
		grammar.Key("public_variables", grammar.Each(&c.PublicVariables, grammar.VariableName)),
		grammar.Key("import", grammar.Each(&c.Import, grammar.Text)),
		grammar.Key("tools", grammar.Table(c.Tools.fields(), c.Tools.check)),
		grammar.Key("trusted", grammar.TrustedTable(&c.Trusted)),
		grammar.Key("audit", grammar.Optional(&c.Audit, func(a *Audit) grammar.Kind { return grammar.Table(a.fields(), a.check) })),
		grammar.Key("history", grammar.Optional(&c.History, func(h *History) grammar.Kind { return grammar.Table(h.fields(), h.check) })),
		grammar.Key("serve", grammar.Optional(&c.Serve, serving.Kind)),
		grammar.Key("log", grammar.Table([]grammar.Field{
			grammar.Key("level", grammar.Choice(&c.Log.Level, LevelDebug, LevelInfo, LevelWarn, LevelError)),
			grammar.Key("format", grammar.WordFor(&c.Log.JSON, grammar.Means("console", false), grammar.Means("json", true))),
		}, nil)),
	}
}
