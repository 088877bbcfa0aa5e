// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// TestSources runs the suite of sources over our own server, and over one that
// knows nothing but the original contract.
func TestSources(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) func() *grpc.Server{"own": ownServer, "original": originalServer} {
		t.Run(name, func(t *testing.T) {
			ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
				at := newSite(t, make(t))
				return ensembletest.Harness{
					Source:     grpctool.Source(at.address, plaintext()),
					Lose:       func() { at.kill(); at.start() },
					NoProgress: true,
				}
			})
		})
	}
}

func ownServer(t *testing.T) func() *grpc.Server {
	return func() *grpc.Server {
		tools := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: ensembletest.ServerTools()})
		t.Cleanup(func() { _ = tools.Close(context.Background()) })
		server := grpc.NewServer()
		tools.Register(server)
		return server
	}
}

// originalServer answers as a server of the original contract does, written by hand.
func originalServer(*testing.T) func() *grpc.Server {
	service := &scripted{
		list: func(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
			response := new(toolspb.ListToolsResponse)
			for _, tool := range ensembletest.ServerTools() {
				def := tool.Definition()
				response.Tools = append(response.Tools, &toolspb.ToolDefinition{
					Name: def.Name, Description: def.Description, InputSchemaJson: string(def.InputSchema), Category: "test",
				})
			}
			return response, nil
		},
		call: func(ctx context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			for _, tool := range ensembletest.ServerTools() {
				if tool.Definition().Name == request.ToolName {
					return originalAnswer(tool.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(request.ArgumentsJson)}))
				}
			}
			return &toolspb.ToolCallResponse{ErrorCode: toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND, ErrorMessage: "no tool " + request.ToolName}, nil
		},
	}
	return service.under(grpctool.OriginalService)
}

func originalAnswer(output invoker.Output, err error) (*toolspb.ToolCallResponse, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, status.FromContextError(err).Err()
	}
	if failure := invoker.AsFailure(err); failure != nil {
		return &toolspb.ToolCallResponse{
			ErrorCode:    toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR,
			ErrorMessage: failure.Message + canister.TextOf(failure.Content),
		}, nil
	}
	text, err := json.Marshal(canister.TextOf(output.Content))
	return &toolspb.ToolCallResponse{Success: true, ResultJson: string(text)}, err
}
