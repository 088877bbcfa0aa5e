// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func TestCheckTools(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	tools := []invoker.Definition{{Name: "a", InputSchema: object}, {Name: "b", InputSchema: object}}
	user := invoker.SampleMessage{Role: "user", Content: canister.Texts("go")}
	uses := func(ids ...string) invoker.SampleMessage {
		m := invoker.SampleMessage{Role: "assistant"}
		for _, id := range ids {
			m.ToolUses = append(m.ToolUses, invoker.ToolUse{ID: id, Name: "a", Input: json.RawMessage(` {"x":1}`)})
		}
		return m
	}
	told := func(ids ...string) invoker.SampleMessage {
		m := invoker.SampleMessage{Role: "user"}
		for _, id := range ids {
			m.ToolResults = append(m.ToolResults, invoker.ToolResult{ToolUseID: id})
		}
		return m
	}
	mixed := told("u")
	mixed.Content = canister.Texts("and")
	broken := uses("u")
	broken.ToolUses[0].Input = json.RawMessage(`[]`)
	byUser, byAssistant := uses("u"), told("u")
	byUser.Role, byAssistant.Role = "user", "assistant"
	type request = invoker.SampleRequest
	type messages = []invoker.SampleMessage
	for want, r := range map[string]request{
		"": {
			Tools: tools, ToolChoice: invoker.ToolsRequired,
			Messages: messages{user, uses("u", "v"), told("v", "u"), uses("u"), told("u"), user, {Role: "assistant"}, user},
		},
		"Tool 0 for the model has no name":          {Tools: []invoker.Definition{{InputSchema: object}}},
		`Two tools for the model have the name "a"`: {Tools: append(tools, tools[0])},
		`The input schema of the tool "a" for the model is not a JSON`: {Tools: []invoker.Definition{{
			Name: "a", InputSchema: json.RawMessage(`true`),
		}}},
		`The tool choice is "required", but the request has no tools`:           {ToolChoice: invoker.ToolsRequired},
		`The tool choice is "any"; it must be`:                                  {ToolChoice: "any"},
		`"u" in message 0 has no result in the next message`:                    {Messages: messages{uses("u")}},
		`"v" in message 0 has no result in the next message`:                    {Messages: messages{uses("u", "v"), told("u"), user}},
		`"u" in message 1 has no result in the next message`:                    {Messages: messages{user, uses("u"), user, told("u")}},
		`Message 1 has a result for the tool use "v", but the previous mes`:     {Messages: messages{uses("u"), told("v")}},
		`Message 2 has a result for the tool use "u", but the previous mes`:     {Messages: messages{uses("u"), told("u"), told("u")}},
		`Message 1 has tool results together with other content`:                {Messages: messages{uses("u"), mixed}},
		`Message 1 has tool results, but its role is not user`:                  {Messages: messages{uses("u"), byAssistant}},
		`Message 0 uses tools, but its role is not assistant`:                   {Messages: messages{byUser}},
		`A tool use in message 0 has no ID, or the ID of another tool use: ""`:  {Messages: messages{uses("")}},
		`A tool use in message 0 has no ID, or the ID of another tool use: "u"`: {Messages: messages{uses("u", "u")}},
		`The input of the tool use "u" in message 0 is not a JSON object`:       {Messages: messages{broken}},
	} {
		err := r.CheckTools()
		if failure := new(invoker.Failure); want == "" && err != nil || want != "" && (!errors.As(err, &failure) ||
			failure.Code != invoker.InvalidArguments || !strings.Contains(failure.Message, want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Only a request that has to do with tools needs a model that takes them.
func TestSampleWithTools(t *testing.T) {
	asked := 0
	call := &invoker.Call{Model: func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
		asked++
		return &invoker.SampleResult{}, nil
	}}
	plain := invoker.SampleRequest{Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts("go")}}}
	for _, takes := range []bool{false, true} {
		call.ModelTools = takes
		for _, change := range []func(*invoker.SampleRequest){
			func(r *invoker.SampleRequest) { r.Tools = []invoker.Definition{} },
			func(r *invoker.SampleRequest) { r.ToolChoice = invoker.ToolsAuto },
			func(r *invoker.SampleRequest) {
				r.Messages = []invoker.SampleMessage{
					{Role: "assistant", ToolUses: []invoker.ToolUse{{ID: "u"}}}, {Role: "user", ToolResults: []invoker.ToolResult{{ToolUseID: "u"}}},
				}
			},
		} {
			request := plain
			change(&request)
			if _, err := call.Sample(t.Context(), &request); (err == nil) != takes || !takes &&
				(!errors.Is(err, invoker.ErrNoModelTools) || invoker.AsFailure(err).Code != invoker.Unavailable) {
				t.Errorf("a model that takes tools: %v: %v", takes, err)
			}
		}
		if _, err := call.Sample(t.Context(), &plain); err != nil {
			t.Error(err)
		}
	}
	if asked != 5 {
		t.Errorf("the model was asked %d times", asked)
	}
	if _, err := call.Sample(t.Context(), &invoker.SampleRequest{Tools: []invoker.Definition{{}}}); err == nil || asked != 5 {
		t.Errorf("a tool without a name: %v", err)
	}
}
