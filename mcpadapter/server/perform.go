// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// Perform does work for a caller as a call of one of Options.Tools, for an interface besides
// MCP that does what the tool does: the caller must see the tool, Options.Invoke decides
// whether and when do runs, with its budgets and approvals, and the audit has a record of
// the call. If an approval has changed the arguments, do does not run (DENIED). ctx is that of a request from [Server.Identify]. If do is nil, Perform only
// reports whether the caller sees the tool. The error is an [invoker.Failure]: DENIED if
// the caller does not see the tool.
func (s *Server) Perform(ctx context.Context, tool string, arguments json.RawMessage, do func(context.Context) error) error {
	from := &caller{ctx: ctx, identity: access.IdentityFrom(ctx)}
	set := s.offers.tools.Load()
	if set == nil {
		var err error
		if set, err = s.toolset(ctx); err != nil {
			return &invoker.Failure{Code: invoker.Unavailable, Message: "The tools are not available now.", Cause: err, Retryable: true}
		}
	}
	i := slices.IndexFunc(set.own, func(t *ensemble.Tool) bool { return t.Definition().Name == tool })
	if part := s.selects.of(from); i < 0 || part != s.selects.everything && !part.Contains(servedcall.Item(set.own[i], s.own)) {
		return invoker.Failf(invoker.Denied, "This client may not use %s.", tool)
	}
	if do == nil {
		return nil
	}
	c := &served{
		server: s, ctx: ctx, tool: &offeredTool{Tool: set.own[i], name: tool, def: set.own[i].Definition()},
		call:   invoker.Call{ID: "http-" + rand.Text(), Arguments: arguments},
		record: audit.Record{Time: time.Now(), Asker: "http", ClientName: access.NameFrom(ctx), Ensemble: s.own.Name(), Tool: tool, Arguments: arguments},
	}
	c.record.Invocation = c.call.ID
	call := &ToolCall{Tool: c.tool.Tool, Item: servedcall.Item(c.tool.Tool, s.own), Call: &c.call, Record: &c.record, instead: do}
	output, err := s.auth.Load().invoke(ctx, call)
	c.note(output.Content, invoker.AsFailure(err))
	return err
}
