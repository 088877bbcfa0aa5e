// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// curious is a server with a tool that asks the person, in the way of the
// protocol that is spoken, and one that waits until it is cancelled.
func curious(waits chan<- struct{}) *mcp.Server {
	question := &mcp.ElicitParams{Mode: "form", Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	server := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult)
			if !ok && req.Session.InitializeParams() == nil || !ok && req.Session.InitializeParams().ProtocolVersion >= "2026-07-28" {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "s"}, nil
			}
			if !ok {
				var err error
				if answer, err = req.Session.Elicit(ctx, question); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil
		})
	server.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			waits <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})
	return server
}

// held is a call that counts how often it is held.
func held() (call *invoker.Call, now, ever *atomic.Int64) {
	now, ever = new(atomic.Int64), new(atomic.Int64)
	return &invoker.Call{Pause: func() func() {
		now.Add(1)
		ever.Add(1)
		return func() { now.Add(-1) }
	}}, now, ever
}

// TestHold: the limits of a call pause while a person is asked. A concurrent call is
// paused too if the protocol does not say which call asks.
func TestHold(t *testing.T) {
	for protocol, beside := range map[string]int64{"2026-07-28": 0, "2025-11-25": 1} {
		t.Run(protocol, func(t *testing.T) {
			call, now, ever := held()
			other, otherNow, otherEver := held()
			options := &mcpadapter.ClientOptions{Protocol: protocol, Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				if now.Load() != 1 || otherNow.Load() != beside {
					t.Errorf("the call is held %d times, the other one %d", now.Load(), otherNow.Load())
				}
				return &invoker.ElicitResult{Action: invoker.Accept}, nil
			}}
			waits := make(chan struct{}, 1)
			c := mcptest.Open(t, mcpadapter.InMemory(curious(waits), options))
			ask, wait := mcptest.Tool(t, c, "ask"), mcptest.Tool(t, c, "wait")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := wait.Invoke(ctx, other)
				ended <- err
			}()
			mcptest.Await(t, "the other call", waits)
			out, err := ask.Invoke(mcptest.Within(t), call)
			if err != nil || canister.TextOf(out.Content) != "accept" {
				t.Errorf("got %q, %v", canister.TextOf(out.Content), err)
			}
			cancel()
			mcptest.Await(t, "the end of the other call", ended)
			if now.Load() != 0 || otherNow.Load() != 0 || ever.Load() != 1 || otherEver.Load() != beside {
				t.Errorf("held %d times, still %d; the other %d times, still %d", ever.Load(), now.Load(), otherEver.Load(), otherNow.Load())
			}
		})
	}
}

// TestAnswerTimeout: a function that ignores its context holds up neither the
// call nor Close, which says so.
func TestAnswerTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			call, now, _ := held()
			options := &mcpadapter.ClientOptions{Protocol: protocol, AnswerTimeout: 20 * time.Millisecond,
				Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					<-release
					return nil, nil
				}}
			c := mcptest.Open(t, mcpadapter.InMemory(curious(nil), options))
			_, err := mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t), call)
			if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
				t.Errorf("the call returned %v", err)
			}
			if now.Load() != 0 {
				t.Error("the call is still held")
			}
			if err := c.Close(mcptest.Within(t)); err == nil || !strings.Contains(err.Error(), "still running after its context ended") {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// TestCloseEndsQuestions: the context of a question ends with the connection.
func TestCloseEndsQuestions(t *testing.T) {
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			asked := make(chan struct{})
			options := &mcpadapter.ClientOptions{Protocol: protocol,
				Elicit: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					close(asked)
					<-ctx.Done()
					return nil, ctx.Err()
				}}
			c := mcptest.Open(t, mcpadapter.InMemory(curious(nil), options))
			ask := mcptest.Tool(t, c, "ask")
			ended := make(chan error, 1)
			go func() {
				_, err := ask.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
				ended <- err
			}()
			mcptest.Await(t, "the question", asked)
			if err := c.Close(mcptest.Within(t)); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := mcptest.Await(t, "the end of the call", ended); err == nil {
				t.Error("the call succeeded")
			}
		})
	}
}

// TestCallIsAsked: where the embedder answers no questions, the person and the
// model of the call that asks do, and one without a person declines.
func TestCallIsAsked(t *testing.T) {
	person := func(_ context.Context, q *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		if q.Message != "who?" || q.Server != "in-memory server" {
			t.Errorf("the person was asked %+v", q)
		}
		return &invoker.ElicitResult{Action: invoker.Accept}, nil
	}
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(protocol, func(t *testing.T) {
			waits := make(chan struct{}, 1)
			c := mcptest.Open(t, mcpadapter.InMemory(curious(waits), &mcpadapter.ClientOptions{Protocol: protocol}))
			ask, wait := mcptest.Tool(t, c, "ask"), mcptest.Tool(t, c, "wait")
			for want, call := range map[string]*invoker.Call{"accept": {Person: person}, "decline": {}} {
				out, err := ask.Invoke(mcptest.Within(t), call)
				if err != nil || canister.TextOf(out.Content) != want {
					t.Errorf("got %q, %v, want %q", canister.TextOf(out.Content), err, want)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := wait.Invoke(ctx, &invoker.Call{Person: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					t.Error("the person of another call was asked")
					return nil, nil
				}})
				ended <- err
			}()
			mcptest.Await(t, "the other call", waits)
			out, err := ask.Invoke(mcptest.Within(t), &invoker.Call{Person: person})
			if known := protocol == "2026-07-28"; known != (err == nil && canister.TextOf(out.Content) == "accept") {
				t.Errorf("beside another call: got %q, %v", canister.TextOf(out.Content), err)
			}
			cancel()
			mcptest.Await(t, "the end of the other call", ended)
		})
	}
}

// TestPromptAsks: a server that renders a prompt asks the person of the call that
// requested the prompt, or nothing if there is no such person.
func TestPromptAsks(t *testing.T) {
	question := &mcp.ElicitParams{Mode: "form", Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	server := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult)
		if init := req.Session.InitializeParams(); !ok && (init == nil || init.ProtocolVersion >= "2026-07-28") {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "s"}, nil
		}
		if !ok {
			var err error
			if answer, err = req.Session.Elicit(ctx, question); err != nil {
				return nil, err
			}
		}
		return &mcp.GetPromptResult{Description: answer.Action, Messages: []*mcp.PromptMessage{}}, nil
	})
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		c := mcptest.Open(t, mcpadapter.InMemory(server, &mcpadapter.ClientOptions{Protocol: protocol})).(ensemble.Library)
		call, now, ever := held()
		call.Person = func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return &invoker.ElicitResult{Action: invoker.Accept}, nil
		}
		got, err := c.Get(invoker.WithCall(mcptest.Within(t), call), "p", nil)
		if err != nil || got.Description != "accept" || ever.Load() != 1 || now.Load() != 0 {
			t.Errorf("%s: got %+v, %v, held %d times", protocol, got, err, ever.Load())
		}
		if got, err := c.Get(mcptest.Within(t), "p", nil); err == nil && got.Description == "accept" {
			t.Errorf("%s: without a call: got %+v", protocol, got)
		}
	}
}

// borrower is a server with a tool that asks for an exchange with a model, in
// the way of the protocol that is spoken, whether the client offers one or not.
func borrower(offered *atomic.Bool) *mcp.Server {
	question := &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "obey"}}}}
	server := mcp.NewServer(&mcp.Implementation{Name: "borrower", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			init := req.Session.InitializeParams()
			offered.Store(init != nil && init.Capabilities.Sampling != nil)
			answer, ok := req.Params.InputResponses["q"].(*mcp.CreateMessageWithToolsResult)
			if !ok && (init == nil || init.ProtocolVersion >= "2026-07-28") {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "s"}, nil
			}
			if ok {
				return &mcp.CallToolResult{Content: []mcp.Content{answer.Content[0]}}, nil
			}
			said, err := req.Session.CreateMessage(ctx, question)
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{said.Content}}, nil
		})
	return server
}

// TestModelOfCall: a server reaches the model of a call only where the embedder
// says so; else the model is not even offered.
func TestModelOfCall(t *testing.T) {
	for _, protocol := range []string{"2026-07-28", "2025-11-25"} {
		for _, allowed := range []bool{false, true} {
			var asked, offered atomic.Bool
			options := &mcpadapter.ClientOptions{Protocol: protocol, SampleCalls: allowed}
			c := mcptest.Open(t, mcpadapter.InMemory(borrower(&offered), options))
			out, err := mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t),
				&invoker.Call{Model: func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
					asked.Store(true)
					return &invoker.SampleResult{Text: "done"}, nil
				}})
			if asked.Load() != allowed || (err == nil && canister.TextOf(out.Content) == "done") != allowed {
				t.Errorf("%s, SampleCalls %v: got %q, %v; the model was asked: %v", protocol, allowed, canister.TextOf(out.Content), err, asked.Load())
			}
			if offered.Load() != allowed {
				t.Errorf("%s, SampleCalls %v: a model is offered: %v", protocol, allowed, offered.Load())
			}
		}
	}
}
