// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// complete answers completion/complete (MCP 2025-11-25,
// server/utilities/completion).
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest, from *caller) (mcp.Result, error) {
	p, selection := req.Params, s.selects.of(from)
	if p.Ref == nil || p.Argument.Name == "" {
		return nil, refusal(jsonrpc.CodeInvalidParams, "a completion needs ref and argument.name")
	}
	asked := &ensemble.CompletionRequest{Template: p.Ref.URI, Argument: p.Argument.Name, Value: p.Argument.Value}
	if p.Ref.Type == "ref/prompt" {
		name, err := s.fullName(ctx, p.Ref.Name, selection)
		if err != nil {
			return nil, err
		}
		asked.Template, asked.Prompt = "", name
	}
	if p.Context != nil {
		asked.Others = p.Context.Arguments
	}
	found, err := selection.Complete(ctx, asked)
	if err != nil {
		return nil, s.failed(ctx, "completion/complete", err, jsonrpc.CodeInvalidParams, "")
	}
	values, err := json.Marshal(append([]string{}, found.Values...))
	if err != nil {
		return nil, err
	}
	completion := jsonobject.New()
	completion.Raw("values", values)
	if found.Total > 0 {
		completion.Int("total", int64(found.Total))
	}
	if found.More {
		completion.Bool("hasMore", true)
	}
	completion.Fields(found.Metadata, wire.MetadataPrefix+wire.CompletionPrefix)
	w := jsonobject.New()
	w.Raw("completion", completion.End())
	finish(w, speaksModern(req.ProtocolVersion()), false)
	return written(w, found.Metadata, wire.MetadataPrefix), nil
}
