// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// tooledModel asks for two tools, and answers when it has their results.
func tooledModel(asked chan<- *invoker.SampleRequest) func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
	return func(_ context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
		asked <- request
		if len(request.Messages) > 1 {
			return &invoker.SampleResult{Text: "It rains.", Model: "m", Finish: "endTurn"}, nil
		}
		return &invoker.SampleResult{Text: "Let me see.", Model: "m", ToolUses: []invoker.ToolUse{
			{ID: "u1", Name: "weather", Input: json.RawMessage(`{"city":"Oslo","at":7}`), Metadata: canister.Fields{"sig": json.RawMessage(`"x"`)}},
			{ID: "u2", Name: "weather"},
		}}, nil
	}
}

// checkFirst and checkThen check that a request has come through whole.
func checkFirst(t *testing.T, r *invoker.SampleRequest) {
	t.Helper()
	if len(r.Tools) != 1 || r.Tools[0].Name != "weather" || r.Tools[0].Description != "Tells the weather." || r.ToolChoice != invoker.ToolsRequired ||
		!strings.Contains(string(r.Tools[0].InputSchema), `"city":{"type":"string"}`) {
		t.Errorf("the model was asked with the tools %+v, choice %q", r.Tools, r.ToolChoice)
	}
}

func checkThen(t *testing.T, r *invoker.SampleRequest) {
	t.Helper()
	if len(r.Messages) != 3 {
		t.Fatalf("the model was asked with %+v", r.Messages)
	}
	said, told := r.Messages[1], r.Messages[2]
	if canister.TextOf(said.Content) != "Let me see." || len(said.ToolUses) != 2 || !strings.Contains(string(said.ToolUses[0].Input), `"city":"Oslo"`) ||
		string(said.ToolUses[0].Metadata["sig"]) != `"x"` || said.ToolUses[1].ID != "u2" {
		t.Errorf("the assistant said %+v", said)
	}
	if len(told.ToolResults) != 2 || !told.ToolResults[0].Failed || told.ToolResults[1].ToolUseID != "u1" || len(told.ToolResults[1].Content) != 3 {
		t.Fatalf("the results are %+v", told)
	}
	link, _ := told.ToolResults[1].Content[1].(canister.LinkContent)
	structured, _ := told.ToolResults[1].Content[2].(canister.StructuredContent)
	if canister.TextOf(told.ToolResults[1].Content) != "rain" || string(told.ToolResults[1].Metadata["cache"]) != `"y"` ||
		link.URI != "file:///r" || string(structured.JSON) != `{"c":1}` {
		t.Errorf("a result is %+v", told.ToolResults[1])
	}
}

// A model with tools receives requests with tools, for every SDK and protocol of the
// server, and its calls are returned.
func TestSamplingWithTools(t *testing.T) {
	for name, source := range map[string]func(*testing.T, mcpadapter.ClientOptions) ensemble.Source{
		"go":         relayProcess,
		"typescript": relayScript,
		"rounds": func(_ *testing.T, o mcpadapter.ClientOptions) ensemble.Source {
			o.Protocol = mcptest.Protocols[0]
			return mcpadapter.InMemory(mcptest.NewRelay(), &o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan *invoker.SampleRequest, 2)
			options := mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleTools: true, Sample: tooledModel(asked)}
			c := mcptest.Open(t, source(t, options))
			got := relayed(t, c, "relay", mcptest.FirstAsked)
			var answer, want struct {
				Content    json.RawMessage
				StopReason string
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.StopReason != "toolUse" {
				t.Fatalf("the server got %s", got)
			}
			_ = json.Unmarshal([]byte("{"+mcptest.UsesAnswer+"}"), &want)
			if !mcptest.SameJSON(t, string(answer.Content), string(want.Content)) {
				t.Errorf("the server got %s", answer.Content)
			}
			checkFirst(t, mcptest.Await(t, "the first request", asked))
			if got := relayed(t, c, "relay", mcptest.ThenAsked); !strings.Contains(got, "It rains.") || !strings.Contains(got, "endTurn") {
				t.Errorf("the server got %s", got)
			}
			checkThen(t, mcptest.Await(t, "the second request", asked))
		})
	}
}

// Numbers that do not fit a float are unchanged, and members keep their order.
func TestSamplingKeepsTheText(t *testing.T) {
	const schema = `{"type":"object","properties":{"z":{"const":12345678901234567890},"a":{"type":"string"}}}`
	answers := make(chan mcptest.Message, 1)
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch {
		case m.Method == "tools/call":
			send := mcptest.StartStream(w)
			send(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"maxTokens":1,"temperature":0,"tools":[{"name":"t","inputSchema":` +
				schema + `}],"messages":[` +
				`{"role":"user","content":{"type":"text","text":"go"}},{"role":"assistant","content":{"type":"tool_use","id":"u","name":"t",` +
				`"input":{"z":12345678901234567890,"a":"x"}}},` +
				`{"role":"user","content":{"type":"tool_result","toolUseId":"u","content":[],"structuredContent":{"z":12345678901234567890}}}]}}`)
			answers <- mcptest.Await(t, "the answer", answers)
			send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[]}}`)
			return true
		case m.Method == "POST" && m.ID != nil:
			answers <- m
		}
		return false
	})
	asked := make(chan *invoker.SampleRequest, 1)
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleTools: true,
		Sample: func(_ context.Context, r *invoker.SampleRequest) (*invoker.SampleResult, error) {
			asked <- r
			return &invoker.SampleResult{
				Model: "m", ToolUses: []invoker.ToolUse{{ID: "v", Name: "t", Input: json.RawMessage(`{"z":12345678901234567890}`)}},
			}, nil
		}}}))
	if _, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
		t.Fatal(err)
	}
	r := mcptest.Await(t, "the request", asked)
	if string(r.Tools[0].InputSchema) != schema || string(r.Messages[1].ToolUses[0].Input) != `{"z":12345678901234567890,"a":"x"}` ||
		string(r.Messages[2].ToolResults[0].Content[0].(canister.StructuredContent).JSON) != `{"z":12345678901234567890}` {
		t.Errorf("the model was asked %+v with %+v", r.Messages, r.Tools)
	}
	if r.Temperature == nil || *r.Temperature != 0 {
		t.Errorf("the temperature is %v", r.Temperature)
	}
	if m := mcptest.Await(t, "the answer", answers); !strings.Contains(string(m.Result),
		`"content":{"type":"tool_use","id":"v","name":"t","input":{"z":12345678901234567890}}`) {
		t.Errorf("the server got %s", m.Result)
	}
}

// What breaks the rules of the protocol does not get to the model.
func TestSamplingRules(t *testing.T) {
	const use = `{"role":"assistant","content":{"type":"tool_use","id":"u","name":"weather","input":{}}}`
	const told = `{"type":"tool_result","toolUseId":"u","content":[]}`
	asked := make(chan *invoker.SampleRequest, 1)
	c := mcptest.Open(t, mcpadapter.InMemory(mcptest.NewRelay(),
		&mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleTools: true, Sample: tooledModel(asked)}))
	for messages, want := range map[string]string{
		mcptest.AskWeather + `,` + use:                                                                          `"u" in message 1 has no result`,
		mcptest.AskWeather + `,` + use + `,` + mcptest.AskWeather:                                               `"u" in message 1 has no result`,
		mcptest.AskWeather + `,` + use + `,{"role":"user","content":[` + told + `,` + told + `]}`:               "or it already has a result",
		mcptest.AskWeather + `,` + use + `,{"role":"user","content":[` + told + `,{"type":"text","text":"x"}]}`: "together with other content",
		mcptest.AskWeather + `,{"role":"user","content":` + told +
			`}`: "but the previous message has no such tool use",
	} {
		got := relayed(t, c, "relay", `{"maxTokens":9,"tools":[`+mcptest.WeatherTool+`],"messages":[`+messages+`]}`)
		if !strings.Contains(got, "-32602") || !strings.Contains(got, want) {
			t.Errorf("%s: the server got %s", messages, got)
		}
	}
	if len(asked) != 0 {
		t.Error("the model was asked")
	}
}

// A message of several blocks needs no tools, and comes through whole.
func TestSamplingWithSeveralBlocks(t *testing.T) {
	asked := make(chan *invoker.SampleRequest, 1)
	c := mcptest.Open(t, mcpadapter.InMemory(mcptest.NewRelay(), &mcpadapter.ClientOptions{Protocol: "2025-11-25", Sample: plainModel(asked)}))
	got := relayed(t, c, "relay",
		`{"maxTokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"What is"},{"type":"image","data":"AA==","mimeType":"image/png"}]}]}`)
	if !strings.Contains(got, "I have no tools.") {
		t.Fatalf("the server got %s", got)
	}
	if r := mcptest.Await(t, "the request", asked); len(r.Messages) != 1 || len(r.Messages[0].Content) != 2 {
		t.Errorf("the model was asked %+v", r.Messages)
	}
}

// The capability is set by the program, and with the newest protocol by the call.
func TestSamplingIsDeclared(t *testing.T) {
	model := plainModel(make(chan *invoker.SampleRequest, 1))
	for _, test := range []struct {
		options        mcpadapter.ClientOptions
		call           invoker.Call
		newest, before string
	}{
		{mcpadapter.ClientOptions{}, invoker.Call{Model: model, ModelTools: true}, `null`, `null`},
		{mcpadapter.ClientOptions{SampleTools: true}, invoker.Call{Model: model, ModelTools: true}, `null`, `null`},
		{mcpadapter.ClientOptions{Sample: model}, invoker.Call{}, `{}`, `{}`},
		{mcpadapter.ClientOptions{Sample: model, SampleTools: true}, invoker.Call{}, `{"tools":{}}`, `{"tools":{}}`},
		{mcpadapter.ClientOptions{SampleCalls: true}, invoker.Call{Model: model, ModelTools: true}, `{}`, `{}`},
		{mcpadapter.ClientOptions{SampleCalls: true, SampleTools: true}, invoker.Call{Model: model, ModelTools: true}, `{"tools":{}}`, `{"tools":{}}`},
		{mcpadapter.ClientOptions{SampleCalls: true, SampleTools: true}, invoker.Call{Model: model}, `{}`, `{"tools":{}}`},
		{mcpadapter.ClientOptions{SampleCalls: true, SampleTools: true}, invoker.Call{}, `null`, `{"tools":{}}`},
	} {
		for protocol, want := range map[string]string{mcptest.Protocols[0]: test.newest, mcptest.Protocols[1]: test.before} {
			options, call := test.options, test.call
			options.Protocol, options.Roots = protocol, []mcpadapter.Root{{URI: "file:///x"}}
			output, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.InMemory(mcptest.NewRelay(), &options)), "can").Invoke(mcptest.Within(t), &call)
			if got := canister.TextOf(output.Content); got != want || err != nil {
				t.Errorf("%s, tools %v of %v, a call with %v and %v: declared %s (%v), want %s", protocol, options.SampleTools,
					options.SampleCalls, call.Model != nil, call.ModelTools, got, err, want)
			}
		}
	}
}

// A call whose model takes no tools is not asked with them, though the capability of
// the connection is there for other calls.
func TestSamplingOfCallsWithoutTools(t *testing.T) {
	c := mcptest.Open(t, mcpadapter.InMemory(mcptest.NewRelay(), &mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleCalls: true, SampleTools: true}))
	asked := make(chan *invoker.SampleRequest, 2)
	for takes, want := range map[bool]string{false: "-32602", true: "toolUse"} {
		call := mcptest.RawCall(mcptest.FirstAsked)
		call.Model, call.ModelTools = tooledModel(asked), takes
		output, err := mcptest.Tool(t, c, "relay").Invoke(mcptest.Within(t), call)
		content := output.Content
		if err != nil {
			content = invoker.AsFailure(err).Content
		}
		if got := canister.TextOf(content); !strings.Contains(got, want) {
			t.Errorf("tools %v: the server got %s", takes, got)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the model was asked %d times", len(asked))
	}
}

// The model of a conversation accepts the tools of a server, and the server receives the
// calls: the conversation runs none of them.
func TestSamplingWithToolsInAConversation(t *testing.T) {
	options := mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleCalls: true, SampleTools: true}
	for name, source := range map[string]func(*testing.T, mcpadapter.ClientOptions) ensemble.Source{"go": relayProcess, "typescript": relayScript} {
		t.Run(name, func(t *testing.T) {
			script := conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{{Name: "relay__relay", Arguments: mcptest.FirstAsked}}},
				conversetest.Line{
					Text: "Let me see.", Calls: []conversetest.Call{
						{Name: "weather", Arguments: `{"city":"Oslo"}`, CallID: "u1"}, {Name: "weather", Arguments: `{}`, CallID: "u2"},
					},
				},
				conversetest.Line{
					Expect: answered(`"input":{"city":"Oslo"}`),
					Calls:  []conversetest.Call{{Name: "relay__relay", Arguments: mcptest.ThenAsked}},
				},
				conversetest.Line{Text: "It rains."},
				conversetest.Line{Expect: answered("It rains."), Text: "Rain."},
			)
			talk := converse.New(script, mcptest.Roster(t, ensemble.New("relay", source(t, options), nil)), nil)
			for event, err := range talk.Send(mcptest.Within(t), canister.Text("How is the weather?")) {
				if done, ok := event.(converse.TurnCompleted); err != nil || ok && (done.Turn.Exchanges != 5 || done.Turn.Invocations != 2) {
					t.Errorf("%+v, %v", event, err)
				}
			}
			if err := script.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
