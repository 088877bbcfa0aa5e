// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/subscriptions"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// codeNoResource is the error code of protocols before 2026-07-28 for an unknown
// resource (MCP 2025-11-25, server/resources § Error Handling; SEP-2164).
const codeNoResource = -32002

// listResources answers resources/list (MCP 2025-11-25, server/resources).
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest, from *caller) (mcp.Result, error) {
	selection := s.selects.of(from)
	all, err := selection.Resources(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "resources", err)
	}
	s.listeners.noteTold(ctx, selection, resourceList)
	slices.SortFunc(all.Resources, func(a, b ensemble.Resource) int { return strings.Compare(a.URI, b.URI) })
	return page(s.options.PageSize, "resources", all.Resources, cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(r ensemble.Resource) string { return r.URI }, listedResource)
}

func listedResource(r ensemble.Resource) json.RawMessage {
	w := jsonobject.New()
	writeLink(w, resourceLink(r))
	return w.End()
}

func (s *Server) listTemplates(ctx context.Context, req *mcp.ListResourceTemplatesRequest, from *caller) (mcp.Result, error) {
	selection := s.selects.of(from)
	all, err := selection.Resources(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "resource templates", err)
	}
	s.listeners.noteTold(ctx, selection, resourceList)
	slices.SortFunc(all.Templates, func(a, b ensemble.Template) int { return strings.Compare(a.URI, b.URI) })
	return page(s.options.PageSize, "resourceTemplates", all.Templates, cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(t ensemble.Template) string { return t.URI }, listedTemplate)
}

func listedTemplate(t ensemble.Template) json.RawMessage {
	w := jsonobject.New()
	w.Text("uriTemplate", t.URI)
	w.Text("name", cmp.Or(t.Name, t.URI)) // the member is required
	w.TextIf("title", t.Title)
	w.TextIf("description", t.Description)
	w.TextIf("mimeType", t.MIME)
	w.Fields(t.Metadata, wire.MetadataPrefix)
	return w.End()
}

// cursorOf returns the cursor of a request. The SDK leaves the params nil if the
// request had none.
func cursorOf(params mcp.Params) string {
	switch p := params.(type) {
	case *mcp.ListToolsParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListResourcesParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListResourceTemplatesParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListPromptsParams:
		if p != nil {
			return p.Cursor
		}
	}
	return ""
}

func (s *Server) unlisted(ctx context.Context, what string, err error) error {
	logevent.Log(ctx, s.log, zapcore.WarnLevel, "a list is not available", logevent.ServeListFailed, zap.String("list", what), zap.Error(err))
	return refusal(jsonrpc.CodeInternalError, "the %s are not available now", what)
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest, from *caller) (mcp.Result, error) {
	isModern := speaksModern(req.ProtocolVersion())
	parts, err := s.selects.of(from).ReadResource(ctx, req.Params.URI)
	if err != nil {
		notFound := int64(codeNoResource)
		if isModern {
			notFound = jsonrpc.CodeInvalidParams
		}
		return nil, s.failed(ctx, "resources/read", err, notFound, req.Params.URI)
	}
	w := jsonobject.New()
	w.List("contents", len(parts), func(i int) []byte {
		part := parts[i]
		part.URI = cmp.Or(part.URI, req.Params.URI)
		return resourceContents(part)
	})
	finish(w, isModern, true)
	var metadata canister.Fields
	if len(parts) > 0 {
		metadata = parts[0].Metadata
	}
	return written(w, metadata, wire.MetadataPrefix+wire.ReadResultPrefix), nil
}

// failed returns the JSON-RPC error of a request that failed. Its data holds the URI,
// if any, and the failure in the JSON form of invoker.Failure.Structured.
func (s *Server) failed(ctx context.Context, method string, err error, notFound int64, uri string) error {
	failure := invoker.AsFailure(err)
	if failure.Cause != nil {
		logevent.Log(ctx, s.log, zapcore.WarnLevel, "a request failed", logevent.ServeRequestFailed, zap.String("method", method), zap.String("code", string(failure.Code)), zap.NamedError("cause", failure.Cause))
	}
	code := int64(jsonrpc.CodeInternalError)
	switch failure.Code {
	case invoker.NotFound, invoker.ToolNotFound:
		code = notFound
	case invoker.InvalidArguments:
		code = jsonrpc.CodeInvalidParams
	}
	data := jsonobject.New()
	data.TextIf("uri", uri)
	if said, err := wire.Members(failure.Structured().JSON); err == nil {
		data.Raw("error", said["error"])
	}
	return &jsonrpc.Error{Code: code, Message: failure.Message, Data: data.End()}
}

// subscribe notifies the session of updates of a resource; the SDK tracks the sessions
// that subscribed to it. The SDK does not forget the URIs of a session that ends, so handle,
// its handler of requests, ends its subscriptions.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest, handle mcp.MethodHandler) error {
	from, err := s.callerOf(ctx, req)
	if err != nil {
		return refusal(jsonrpc.CodeInternalError, "%v", err)
	}
	if len(req.Params.URI) > subscriptions.MaxURI {
		return refusal(jsonrpc.CodeInvalidParams, "the URI has more than %d bytes", subscriptions.MaxURI)
	}
	stop, err := s.selects.of(from).Subscribe(ctx, req.Params.URI)
	if err != nil {
		return s.failed(ctx, "resources/subscribe", err, jsonrpc.CodeInvalidParams, req.Params.URI)
	}
	forget := func(uri string) {
		_, _ = handle(context.Background(), "resources/unsubscribe", &mcp.UnsubscribeRequest{Session: req.Session, Params: &mcp.UnsubscribeParams{URI: uri}})
	}
	if !s.subscribed.Add(req.Session, from.client, req.Params.URI, stop, forget) {
		stop()
		return refusal(jsonrpc.CodeInvalidParams, "a client has no more than %d subscriptions", subscriptions.PerClient)
	}
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	s.subscribed.Remove(req.Session, req.Params.URI)
	return nil
}
