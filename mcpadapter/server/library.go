// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// codeNoResource is the error code of protocols before 2026-07-28 for an unknown
// resource (MCP 2025-11-25, server/resources § Error Handling; SEP-2164).
const codeNoResource = -32002

// listResources answers resources/list (MCP 2025-11-25, server/resources).
func (s *Server) listResources(ctx context.Context, req *mcp.ListResourcesRequest) (mcp.Result, error) {
	all, err := s.roster.Resources(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "resources", err)
	}
	slices.SortFunc(all.Resources, func(a, b ensemble.Resource) int { return strings.Compare(a.URI, b.URI) })
	return page(s.options.PageSize, "resources", all.Resources, cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(r ensemble.Resource) string { return r.URI },
		func(r ensemble.Resource) json.RawMessage {
			w := newObject()
			w.link(resourceLink(r))
			return w.end()
		})
}

func (s *Server) listTemplates(ctx context.Context, req *mcp.ListResourceTemplatesRequest) (mcp.Result, error) {
	all, err := s.roster.Resources(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "resource templates", err)
	}
	slices.SortFunc(all.Templates, func(a, b ensemble.Template) int { return strings.Compare(a.URI, b.URI) })
	return page(s.options.PageSize, "resourceTemplates", all.Templates, cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(t ensemble.Template) string { return t.URI },
		func(t ensemble.Template) json.RawMessage {
			w := newObject()
			w.text("uriTemplate", t.URI)
			w.text("name", named(t.Name, t.URI))
			w.textIf("title", t.Title)
			w.textIf("description", t.Description)
			w.textIf("mimeType", t.MIME)
			w.fields(t.Metadata, wire.MetadataPrefix)
			return w.end()
		})
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
	event.Log(ctx, s.log, zapcore.WarnLevel, "a list cannot be had", event.ServeListFailed, zap.String("list", what), zap.Error(err))
	return refusal(jsonrpc.CodeInternalError, "the %s are not available now", what)
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	isModern := speaksModern(req.ProtocolVersion())
	parts, err := s.roster.ReadResource(ctx, req.Params.URI)
	if err != nil {
		notFound := int64(codeNoResource)
		if isModern {
			notFound = jsonrpc.CodeInvalidParams
		}
		return nil, s.failed(ctx, "resources/read", err, notFound, req.Params.URI)
	}
	w := newObject()
	w.key("contents")
	w.byte('[')
	for i, part := range parts {
		if i > 0 {
			w.byte(',')
		}
		if part.URI == "" {
			part.URI = req.Params.URI
		}
		w.write(resourceContents(part))
	}
	w.byte(']')
	w.finish(isModern, true)
	var metadata canister.Fields
	if len(parts) > 0 {
		metadata = parts[0].Metadata
	}
	return w.result(metadata, wire.MetadataPrefix+wire.ReadResultPrefix), nil
}

// failed returns the JSON-RPC error of a request that failed. Its data holds the URI,
// if any, and the failure in the JSON form of invoker.Failure.Structured.
func (s *Server) failed(ctx context.Context, method string, err error, notFound int64, uri string) error {
	failure := invoker.AsFailure(err)
	if failure.Cause != nil {
		event.Log(ctx, s.log, zapcore.WarnLevel, "a request failed", event.ServeRequestFailed, zap.String("method", method), zap.String("code", string(failure.Code)), zap.NamedError("cause", failure.Cause))
	}
	code := int64(jsonrpc.CodeInternalError)
	switch failure.Code {
	case invoker.NotFound, invoker.ToolNotFound:
		code = notFound
	case invoker.InvalidArguments:
		code = jsonrpc.CodeInvalidParams
	}
	data := newObject()
	data.textIf("uri", uri)
	if said, err := wire.Members(failure.Structured().JSON); err == nil {
		data.raw("error", said["error"])
	}
	return &jsonrpc.Error{Code: code, Message: failure.Message, Data: data.end()}
}

// subscribe notifies the session of updates of a resource; the SDK tracks the sessions
// that subscribed to it.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	stop, err := s.roster.Subscribe(ctx, req.Params.URI)
	if err != nil {
		return s.failed(ctx, "resources/subscribe", err, jsonrpc.CodeInvalidParams, req.Params.URI)
	}
	if !s.subscribed.add(req.Session, req.Params.URI, stop) {
		stop()
		return refusal(jsonrpc.CodeInvalidParams, "a session has no more than %d subscriptions", maxSubscriptions)
	}
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	s.subscribed.remove(req.Session, req.Params.URI)
	return nil
}

// promptsByName returns the prompts by the names that clients use.
func (s *Server) promptsByName(ctx context.Context) (map[string]ensemble.Prompt, error) {
	all, err := s.roster.Prompts(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "prompts", err)
	}
	count := make(map[string]int)
	for _, p := range all.Prompts {
		count[p.Name]++
	}
	byName := make(map[string]ensemble.Prompt, len(all.Prompts))
	for _, p := range all.Prompts {
		name := p.FullName()
		if s.options.OwnNames && count[p.Name] == 1 {
			name = p.Name
		}
		byName[name] = p
	}
	return byName, nil
}

// listPrompts answers prompts/list (MCP 2025-11-25, server/prompts).
func (s *Server) listPrompts(ctx context.Context, req *mcp.ListPromptsRequest) (mcp.Result, error) {
	byName, err := s.promptsByName(ctx)
	if err != nil {
		return nil, err
	}
	return page(s.options.PageSize, "prompts", sortedKeys(byName), cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(name string) string { return name },
		func(name string) json.RawMessage { return listedPrompt(name, byName[name]) })
}

func listedPrompt(name string, p ensemble.Prompt) json.RawMessage {
	w := newObject()
	w.text("name", name)
	w.textIf("title", p.Title)
	w.textIf("description", p.Description)
	if len(p.Arguments) > 0 {
		w.key("arguments")
		w.byte('[')
		for i, a := range p.Arguments {
			if i > 0 {
				w.byte(',')
			}
			argument := newObject()
			argument.text("name", a.Name)
			argument.textIf("title", a.Title)
			argument.textIf("description", a.Description)
			if a.Required {
				argument.bool("required", true)
			}
			argument.fields(a.Metadata, wire.MetadataPrefix)
			w.write(argument.end())
		}
		w.byte(']')
	}
	w.fields(p.Metadata, wire.MetadataPrefix)
	return w.end()
}

// fullName returns the name that the roster uses for a prompt.
func (s *Server) fullName(ctx context.Context, name string) (string, error) {
	if !s.options.OwnNames {
		return name, nil
	}
	byName, err := s.promptsByName(ctx)
	if err != nil {
		return "", err
	}
	if prompt, ok := byName[name]; ok {
		return prompt.FullName(), nil
	}
	return name, nil // the roster reports the error
}

// getPrompt answers prompts/get. The function that writes the prompt may ask the
// client.
func (s *Server) getPrompt(ctx context.Context, req *mcp.GetPromptRequest, from *caller) (mcp.Result, error) {
	caps, isModern := req.ClientCapabilities(), speaksModern(req.ProtocolVersion())
	p := req.Params
	arguments, err := json.Marshal(p.Arguments)
	if err != nil {
		return nil, err
	}
	what := "prompts/get " + p.Name + " " + string(arguments)
	waiting, err := s.parked.resumed(p.RequestState, what, from)
	if err != nil {
		return nil, err
	}
	call := new(invoker.Call)
	switch {
	case waiting != nil:
		return waiting.resume(ctx, req.Session, p.InputResponses)
	case !canBeAsked(caps) || !isModern && !from.asks:
	case isModern:
		r := s.newRounds(what, from, p.InputResponses)
		return r.begin(ctx, func(ctx context.Context) (mcp.Result, error) {
			return s.writePrompt(invoker.WithCall(offer(ctx, call, r.ask, nil, caps), call), p, isModern)
		})
	default:
		ctx = offer(ctx, call, s.directly(ctx, req.Session, from), completes(ctx, req.Session), caps)
	}
	return s.writePrompt(invoker.WithCall(ctx, call), p, isModern)
}

func (s *Server) writePrompt(ctx context.Context, p *mcp.GetPromptParams, isModern bool) (mcp.Result, error) {
	name, err := s.fullName(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	prompt, err := s.roster.GetPrompt(ctx, name, p.Arguments)
	if refused := undeclared(err); isModern && refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, s.failed(ctx, "prompts/get", err, jsonrpc.CodeInvalidParams, "")
	}
	w := newObject()
	w.textIf("description", prompt.Description)
	w.key("messages")
	w.byte('[')
	n := 0
	for _, message := range prompt.Messages {
		for _, content := range message.Content { // one message for each piece of content
			if n++; n > 1 {
				w.byte(',')
			}
			w.write(promptMessage(message, content))
		}
	}
	w.byte(']')
	w.finish(isModern, false)
	return w.result(prompt.Metadata, wire.MetadataPrefix), nil
}

func promptMessage(message ensemble.PromptMessage, content canister.Content) []byte {
	w := newObject()
	w.text("role", message.Role)
	w.key("content")
	w.block(content)
	w.fields(message.Metadata, wire.MetadataPrefix)
	return w.end()
}

// complete answers completion/complete (MCP 2025-11-25,
// server/utilities/completion).
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (mcp.Result, error) {
	p := req.Params
	if p.Ref == nil || p.Argument.Name == "" {
		return nil, refusal(jsonrpc.CodeInvalidParams, "a completion needs ref and argument.name")
	}
	asked := &ensemble.CompletionRequest{Template: p.Ref.URI, Argument: p.Argument.Name, Value: p.Argument.Value}
	if p.Ref.Type == "ref/prompt" {
		name, err := s.fullName(ctx, p.Ref.Name)
		if err != nil {
			return nil, err
		}
		asked.Template, asked.Prompt = "", name
	}
	if p.Context != nil {
		asked.Others = p.Context.Arguments
	}
	found, err := s.roster.Complete(ctx, asked)
	if err != nil {
		return nil, s.failed(ctx, "completion/complete", err, jsonrpc.CodeInvalidParams, "")
	}
	values, err := json.Marshal(append([]string{}, found.Values...))
	if err != nil {
		return nil, err
	}
	completion := newObject()
	completion.raw("values", values)
	if found.Total > 0 {
		completion.int("total", int64(found.Total))
	}
	if found.More {
		completion.bool("hasMore", true)
	}
	completion.fields(found.Metadata, wire.MetadataPrefix+wire.CompletionPrefix)
	w := newObject()
	w.raw("completion", completion.end())
	w.finish(speaksModern(req.ProtocolVersion()), false)
	return w.result(found.Metadata, wire.MetadataPrefix), nil
}
