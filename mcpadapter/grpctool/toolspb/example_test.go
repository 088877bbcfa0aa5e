// SPDX-License-Identifier: Apache-2.0

package toolspb_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
)

// greeter is a tool server that is written against the contract alone.
type greeter struct {
	toolspb.UnimplementedMcpToolServiceServer
}

func (greeter) ListTools(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
	return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{Name: "greet", InputSchemaJson: `{"type":"object"}`}}}, nil
}

func (greeter) CallTool(_ context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
	if request.GetToolName() != "greet" {
		return &toolspb.ToolCallResponse{ErrorCode: toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND, ErrorMessage: "There is only greet."}, nil
	}
	return &toolspb.ToolCallResponse{Success: true, ResultJson: `"Hello!"`}, nil
}

func Example() {
	server := grpc.NewServer()
	toolspb.RegisterMcpToolServiceServer(server, greeter{})
	for name, service := range server.GetServiceInfo() {
		fmt.Println(name, len(service.Methods))
	}
	// Output: consort.tools.v1.McpToolService 2
}
