// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SampleRequest is a server's wish for an exchange with a model
// (MCP 2025-11-25, client/sampling). Whoever answers it may change or refuse it.
type SampleRequest struct {
	System      string // the instruction; may be empty
	Messages    []SampleMessage
	MaxTokens   int64
	Temperature float64 // 0 when not said
	Stop        []string
	Models      []string // names that the server would like, the best first
}

// SampleMessage is one message of a [SampleRequest].
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []canister.Content
}

// SampleResult is what the model said.
type SampleResult struct {
	Text   string
	Model  string // the name of the model that said it
	Finish string // "endTurn", "stopSequence", "maxTokens" or the model's own word
}

// ElicitRequest is a question of the server to the person
// (MCP 2025-11-25, client/elicitation).
type ElicitRequest struct {
	Message string
	// Schema is the JSON Schema of the answer, a flat object; nil when the
	// person is sent to URL instead.
	Schema json.RawMessage
	// URL is a page that the person is asked to visit; empty for a form. It
	// comes from the server: show where it leads before it is opened.
	URL string
}

// ElicitResult is the person's answer.
type ElicitResult struct {
	Action Action
	// Content has the values that the schema asks for, when Action is Accept.
	Content map[string]any
}

// Action says what the person did with a question.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // said no
	Dismiss Action = "cancel"  // said nothing
)

// decline answers requests for what the client does not offer: "method not
// found", as for any method that is not there (JSON-RPC 2.0, § 5.1).
func (o *ClientOptions) decline(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "sampling/createMessage" && o.Sample == nil || method == "elicitation/create" && o.Elicit == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
		}
		return next(ctx, method, req)
	}
}

func (o *ClientOptions) sample(ctx context.Context, req *mcp.CreateMessageRequest) (_ *mcp.CreateMessageResult, err error) {
	defer recoverInto(&err)
	asked := &SampleRequest{
		System:      req.Params.SystemPrompt,
		MaxTokens:   req.Params.MaxTokens,
		Temperature: req.Params.Temperature,
		Stop:        req.Params.StopSequences,
	}
	if preferences := req.Params.ModelPreferences; preferences != nil {
		for _, hint := range preferences.Hints {
			asked.Models = append(asked.Models, hint.Name)
		}
	}
	for _, message := range req.Params.Messages {
		block, err := json.Marshal(message.Content)
		if err != nil {
			return nil, err
		}
		asked.Messages = append(asked.Messages, SampleMessage{Role: string(message.Role), Content: []canister.Content{contentOf(block)}})
	}
	answer, err := o.Sample(ctx, asked)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, &jsonrpc.Error{Code: -1, Message: "the request was refused"}
	}
	return &mcp.CreateMessageResult{
		Content: &mcp.TextContent{Text: answer.Text}, Model: answer.Model, Role: "assistant", StopReason: answer.Finish,
	}, nil
}

func (o *ClientOptions) elicit(ctx context.Context, req *mcp.ElicitRequest) (_ *mcp.ElicitResult, err error) {
	defer recoverInto(&err)
	asked := &ElicitRequest{Message: req.Params.Message, URL: req.Params.URL}
	if req.Params.RequestedSchema != nil {
		if asked.Schema, err = json.Marshal(req.Params.RequestedSchema); err != nil {
			return nil, err
		}
	}
	answer, err := o.Elicit(ctx, asked)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return &mcp.ElicitResult{Action: string(Dismiss)}, nil
	}
	result := &mcp.ElicitResult{Action: string(answer.Action), Content: answer.Content}
	if answer.Action == Accept && asked.URL == "" && result.Content == nil {
		result.Content = map[string]any{} // so that the schema's defaults are filled in
	}
	return result, nil
}

// recoverInto makes the panic of an embedder's function the error of the request.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the client's function panicked: %v", p)
	}
}
