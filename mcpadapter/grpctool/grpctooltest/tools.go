// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Tool is a scripted tool of a server. All methods may be called concurrently.
type Tool struct {
	server *Server
	name   string
	answer func(context.Context, Call) (*toolspb.ToolCallResponse, error)

	mu  sync.Mutex
	def *toolspb.ToolDefinition
	ran int
}

// toolbox holds the tools of a server in the order of the list.
type toolbox struct {
	mu    sync.Mutex
	tools []*Tool
}

// Returns adds a tool that answers with a value, encoded as JSON, and returns the tool.
// It replaces a tool with the same name. If the value cannot be encoded, calls fail
// with INTERNAL_ERROR.
func (s *Server) Returns(name string, result any) *Tool {
	return s.Does(name, func(context.Context, Call) (any, error) { return result, nil })
}

// Fails adds a tool that fails with an error code of the contract.
func (s *Server) Fails(name string, code toolspb.ErrorCode, message string) *Tool {
	return s.Answers(name, &toolspb.ToolCallResponse{ErrorCode: code, ErrorMessage: message})
}

// Does adds a tool that runs a function and encodes its result as JSON. An
// [invoker.Failure] becomes the closest error code of the contract, a gRPC status stays
// that status, a context error becomes CANCELLED or DEADLINE_EXCEEDED, and any other
// error becomes INTERNAL_ERROR with the text of the error.
func (s *Server) Does(name string, run func(ctx context.Context, call Call) (any, error)) *Tool {
	return s.add(name, func(ctx context.Context, call Call) (*toolspb.ToolCallResponse, error) {
		result, err := run(ctx, call)
		if err != nil {
			return failed(err)
		}
		text, err := json.Marshal(result)
		if err != nil {
			return failed(err)
		}
		return &toolspb.ToolCallResponse{Success: true, ResultJson: string(text)}, nil
	})
}

// Answers adds a tool with a fixed response, which need not follow the contract.
func (s *Server) Answers(name string, response *toolspb.ToolCallResponse) *Tool {
	return s.add(name, func(context.Context, Call) (*toolspb.ToolCallResponse, error) { return response, nil })
}

// Offer adds invokers, for example from ensembletest. They answer like a server of the
// original contract: with one JSON value, the text of the content, or with
// INTERNAL_ERROR and a message. Their definitions have no hints.
func (s *Server) Offer(tools ...invoker.Invoker) {
	for _, tool := range tools {
		def := tool.Definition()
		s.add(def.Name, func(ctx context.Context, call Call) (*toolspb.ToolCallResponse, error) {
			output, err := tool.Invoke(ctx, &invoker.Call{ID: call.IdempotencyKey, Arguments: json.RawMessage(call.Arguments)})
			if err != nil {
				return failed(err)
			}
			text, err := json.Marshal(canister.TextOf(output.Content))
			return &toolspb.ToolCallResponse{Success: true, ResultJson: string(text)}, err
		}).Define(func(d *toolspb.ToolDefinition) {
			d.Description, d.InputSchemaJson = def.Description, string(def.InputSchema)
		})
	}
}

// Remove removes the tool with the name, if there is one.
func (s *Server) Remove(name string) {
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	s.tools.tools = slices.DeleteFunc(s.tools.tools, func(t *Tool) bool { return t.name == name })
}

func (s *Server) add(name string, answer func(context.Context, Call) (*toolspb.ToolCallResponse, error)) *Tool {
	t := &Tool{server: s, name: name, answer: answer, def: &toolspb.ToolDefinition{
		Name: name, Description: "The scripted tool " + name + ".", InputSchemaJson: `{"type":"object"}`,
	}}
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	if i := slices.IndexFunc(s.tools.tools, func(t *Tool) bool { return t.name == name }); i >= 0 {
		s.tools.tools[i] = t
	} else {
		s.tools.tools = append(s.tools.tools, t)
	}
	return t
}

// find returns the tool with the name, nil if there is none.
func (b *toolbox) find(name string) *Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.tools, func(t *Tool) bool { return t.name == name }); i >= 0 {
		return b.tools[i]
	}
	return nil
}

// list returns the definitions of a category, or all if category is empty.
func (b *toolbox) list(category string) *toolspb.ListToolsResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	response := new(toolspb.ListToolsResponse)
	for _, t := range b.tools {
		if def := t.definition(); category == "" || def.Category == category {
			response.Tools = append(response.Tools, def)
		}
	}
	return response
}

// Define changes the definition, and returns the tool. Changing the name changes only
// the listed name, not the name that is called.
func (t *Tool) Define(change func(*toolspb.ToolDefinition)) *Tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t.def)
	return t
}

func (t *Tool) definition() *toolspb.ToolDefinition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return proto.CloneOf(t.def)
}

// Ran returns how often the tool ran, and so how often it had its effect, regardless of
// what happened to the responses.
func (t *Tool) Ran() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ran
}

func (t *Tool) run(ctx context.Context, call Call) (*toolspb.ToolCallResponse, error) {
	t.mu.Lock()
	t.ran++
	t.mu.Unlock()
	return t.answer(ctx, call)
}

// failed returns the response for an error.
func failed(err error) (*toolspb.ToolCallResponse, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, status.FromContextError(err).Err()
	}
	if s, ok := status.FromError(err); ok {
		return nil, s.Err()
	}
	response := &toolspb.ToolCallResponse{ErrorCode: toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, ErrorMessage: err.Error()}
	var failure *invoker.Failure
	if errors.As(err, &failure) {
		response.ErrorMessage = failure.Message + canister.TextOf(failure.Content)
		switch failure.Code {
		case invoker.InvalidArguments:
			response.ErrorCode = toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS
		case invoker.Unavailable:
			response.ErrorCode = toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE
		case invoker.ToolNotFound:
			response.ErrorCode = toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND
		}
	}
	return response, nil
}
