// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// promptsByName returns the prompts of a selection by the names that clients use. With OwnNames, a
// prompt has its own name if no other prompt of the selection has it, as its own or as its full name.
func (s *Server) promptsByName(ctx context.Context, selection *ensemble.Selection) (map[string]ensemble.Prompt, error) {
	all, err := selection.Prompts(ctx)
	if err != nil {
		return nil, s.unlisted(ctx, "prompts", err)
	}
	count := make(map[string]int)
	for _, p := range all.Prompts {
		count[p.Name]++
		count[p.FullName()]++
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
func (s *Server) listPrompts(ctx context.Context, req *mcp.ListPromptsRequest, from *caller) (mcp.Result, error) {
	selection := s.selects.of(from)
	byName, err := s.promptsByName(ctx, selection)
	if err != nil {
		return nil, err
	}
	s.listeners.noteTold(ctx, selection, promptList)
	return page(s.options.PageSize, "prompts", sortedKeys(byName), cursorOf(req.Params), speaksModern(req.ProtocolVersion()),
		func(name string) string { return name },
		func(name string) json.RawMessage { return listedPrompt(name, byName[name]) })
}

func listedPrompt(name string, p ensemble.Prompt) json.RawMessage {
	w := jsonobject.New()
	w.Text("name", name)
	w.TextIf("title", p.Title)
	w.TextIf("description", p.Description)
	if len(p.Arguments) > 0 {
		w.List("arguments", len(p.Arguments), func(i int) []byte {
			a, argument := &p.Arguments[i], jsonobject.New()
			argument.Text("name", a.Name)
			argument.TextIf("title", a.Title)
			argument.TextIf("description", a.Description)
			if a.Required {
				argument.Bool("required", true)
			}
			argument.Fields(a.Metadata, wire.MetadataPrefix)
			return argument.End()
		})
	}
	w.Fields(p.Metadata, wire.MetadataPrefix)
	return w.End()
}

// fullName returns the name that the roster uses for a prompt.
func (s *Server) fullName(ctx context.Context, name string, selection *ensemble.Selection) (string, error) {
	if !s.options.OwnNames {
		return name, nil
	}
	byName, err := s.promptsByName(ctx, selection)
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
	what := which("prompts/get", p.Name, arguments)
	waiting, err := s.parked.resumed(p.RequestState, what, from)
	if err != nil {
		return nil, err
	}
	call := new(invoker.Call)
	switch {
	case waiting != nil:
		return waiting.resume(ctx, req.Session, nil, p.InputResponses)
	case !canBeAsked(caps) || !isModern && !from.asks:
	case isModern:
		r, err := newRounds(s, what, len(arguments), from, p.InputResponses)
		if err != nil {
			return nil, refusal(jsonrpc.CodeInternalError, "%v", err)
		}
		return r.begin(ctx, func(ctx context.Context) (mcp.Result, error) {
			return s.writePrompt(invoker.WithCall(offer(ctx, call, r.ask, nil, caps), call), p, from, isModern)
		})
	default:
		ctx = offer(ctx, call, s.directly(ctx, req.Session, from), completes(ctx, req.Session), caps)
	}
	return s.writePrompt(invoker.WithCall(ctx, call), p, from, isModern)
}

func (s *Server) writePrompt(ctx context.Context, p *mcp.GetPromptParams, from *caller, isModern bool) (mcp.Result, error) {
	selection := s.selects.of(from)
	name, err := s.fullName(ctx, p.Name, selection)
	if err != nil {
		return nil, err
	}
	prompt, err := selection.GetPrompt(ctx, name, p.Arguments)
	if refused := undeclared(err); isModern && refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, s.failed(ctx, "prompts/get", err, jsonrpc.CodeInvalidParams, "")
	}
	w := jsonobject.New()
	w.TextIf("description", prompt.Description)
	var messages [][]byte
	for _, message := range prompt.Messages {
		for _, content := range message.Content { // one message for each piece of content
			messages = append(messages, promptMessage(message, content))
		}
	}
	w.List("messages", len(messages), func(i int) []byte { return messages[i] })
	finish(w, isModern, false)
	return written(w, prompt.Metadata, wire.MetadataPrefix), nil
}

func promptMessage(message ensemble.PromptMessage, content canister.Content) []byte {
	w := jsonobject.New()
	w.Text("role", message.Role)
	w.Raw("content", blockOf(content))
	w.Fields(message.Metadata, wire.MetadataPrefix)
	return w.End()
}
