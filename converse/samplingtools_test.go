// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/invoker"
)

// looper is a tool that lets the model use tools of its own until it answers, and says
// which were used.
func looper(tools ...invoker.Definition) invoker.Invoker {
	return fn("loop", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		request := sampleRequest("question")
		request.Tools, request.ToolChoice = tools, invoker.ToolsRequired
		var said []string
		for {
			result, err := call.Sample(ctx, request)
			if err != nil {
				return invoker.Output{}, err
			}
			said = append(said, result.Text+"/"+result.Finish)
			if len(result.ToolUses) == 0 {
				return invoker.Output{Content: canister.Texts(strings.Join(said, "; "))}, nil
			}
			used := invoker.SampleMessage{Role: "assistant", Content: canister.Texts(result.Text), ToolUses: result.ToolUses}
			told := invoker.SampleMessage{Role: "user"}
			for _, use := range slices.Backward(result.ToolUses) { // in any order
				said = append(said, use.Name+string(use.Input))
				told.ToolResults = append(told.ToolResults,
					invoker.ToolResult{ToolUseID: use.ID, Content: canister.Texts("of " + use.ID), Failed: use.Name != "add"})
			}
			request.Messages, request.ToolChoice = append(request.Messages, used, told), ""
		}
	})
}

func ownTool(name string) invoker.Definition {
	return invoker.Definition{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// A tool gives the model tools of its own. The model is offered those alone, the
// conversation runs none of them, and the exchanges count as those of any tool.
func TestSampleWithTools(t *testing.T) {
	first := func(request *converse.Request) error {
		if len(request.Tools.Definitions) != 2 || request.Tools.Definitions[0].Name != "add" || !request.RequireInvocation || request.NoInvocations {
			return fmt.Errorf("the request is %+v with %+v", request, request.Tools)
		}
		return nil
	}
	then := func(request *converse.Request) error {
		said, _ := request.History[2].(canister.Assistant)
		call, _ := request.History[3].(canister.Invocation)
		told := results(request.History)
		if len(request.History) != 7 || canister.TextOf(said.Content) != "hm" || call.CallID != "c1" ||
			call.Arguments != `{"a":12345678901234567890}` || request.RequireInvocation {
			return fmt.Errorf("the history is %+v", request.History)
		}
		if len(told) != 2 || canister.TextOf(told[0].Content) != "of c1" || told[0].Failed() || !told[1].Failed() {
			return fmt.Errorf("the results are %+v", told)
		}
		return nil
	}
	odd := "read.file with a name that is longer than any API of a model would ever take"
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}, Usage: usage(10, 1)},
		conversetest.Line{Expect: first, Text: "hm", Usage: usage(5, 2), Calls: []conversetest.Call{
			{Name: "add", Arguments: `{"a":12345678901234567890}`, CallID: "c1"}, {Name: "made_up", Arguments: ` {} `, CallID: "c2"},
		}},
		conversetest.Line{Expect: then, Text: "five", Usage: usage(5, 3)},
		conversetest.Line{Text: "done", Usage: usage(20, 1), Expect: told("hm/toolUse; made_up{}; add{\"a\":12345678901234567890}; five/endTurn")},
	)
	talk := converse.New(script, newRoster(t, looper(ownTool(odd), ownTool("add"))), nil)
	turn := last(t, play(t, talk, "go"))
	played(t, script)
	sound(t, talk.History())
	if turn.Exchanges != 4 || turn.Invocations != 1 || turn.Usage != (canister.Usage{Input: 40, Output: 7}) || len(talk.History()) != 5 {
		t.Errorf("the turn is %+v, with %d canisters", turn, len(talk.History()))
	}
}

// A name that a model API would refuse has another form for the model, and its own for
// the tool that asks.
func TestSampleWithOddNames(t *testing.T) {
	odd := "read.file"
	script := &renaming{Script: conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}},
		conversetest.Line{Text: "done"},
	)}
	talk := converse.New(script, newRoster(t, looper(ownTool(odd))), nil)
	play(t, talk, "go")
	if got := canister.TextOf(results(talk.History())[0].Content); got != `/toolUse; read.file{}; ok/endTurn` {
		t.Errorf("the tool said %q", got)
	}
	if len(script.names) != 2 || script.names[0] != script.names[1] || strings.ContainsAny(script.names[0], ".") || len(script.names[0]) > 64 {
		t.Errorf("the model knew %q", script.names)
	}
}

// renaming is a model that calls the tool that a tool offers it, under the name that it
// has, and answers when it has the result. It keeps metadata with what it says.
type renaming struct {
	*conversetest.Script
	names []string // of the tool, and of its use in the history
	kept  []canister.Fields
}

func (r *renaming) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if request.Purpose != converse.PurposeSampling {
		return r.Script.Exchange(ctx, request)
	}
	reply := converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("ok"), Finish: canister.FinishStop}}
	reply.Message.Metadata = canister.Fields{"thought": json.RawMessage(`"hm"`)}
	if len(results(request.History)) == 0 {
		reply.Message.Content, reply.Message.Finish = nil, canister.FinishInvocations
		call := canister.Invocation{
			Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "c", Name: request.Tools.Definitions[0].Name, Arguments: "{}",
		}
		call.Metadata = canister.Fields{"signature": json.RawMessage(`"x"`)}
		reply.Invocations = append(reply.Invocations, call)
		r.names = append(r.names, call.Name)
	} else {
		said, call := request.History[2].(canister.Assistant), request.History[3].(canister.Invocation)
		r.names, r.kept = append(r.names, call.Name), append(r.kept, said.Metadata, call.Metadata)
	}
	return func(yield func(converse.ModelEvent, error) bool) { yield(reply, nil) }
}

// What a model API wants to see again is there again. The requester, which can be a server
// of somebody else, gets none of it, and cannot send any.
func TestSampleKeepsMetadata(t *testing.T) {
	script := &renaming{Script: conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}},
		conversetest.Line{Text: "done"},
	)}
	spy := fn("loop", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		request := sampleRequest("question")
		request.Tools = []invoker.Definition{ownTool("add")}
		asked, err := call.Sample(ctx, request)
		if err != nil {
			return invoker.Output{}, err
		}
		for i := range asked.ToolUses {
			if len(asked.ToolUses[i].Metadata) > 0 {
				t.Errorf("the requester got %s", asked.ToolUses[i].Metadata)
			}
			asked.ToolUses[i].Metadata = canister.Fields{"signature": json.RawMessage(`"forged"`)}
		}
		request.Messages = append(request.Messages, invoker.SampleMessage{Role: "assistant", ToolUses: asked.ToolUses},
			invoker.SampleMessage{Role: "user", ToolResults: []invoker.ToolResult{{ToolUseID: asked.ToolUses[0].ID, Content: canister.Texts("5")}}})
		_, err = call.Sample(ctx, request)
		return invoker.Output{}, err
	})
	play(t, converse.New(script, newRoster(t, spy), nil), "go")
	if len(script.kept) != 2 || string(script.kept[0]["thought"]) != `"hm"` || string(script.kept[1]["signature"]) != `"x"` {
		t.Errorf("the model got back %s", script.kept)
	}
}

// choosy is a model that refuses a tool, and takes two of them at most.
type choosy struct{ *conversetest.Script }

func (choosy) Screen(definition *invoker.Definition) error {
	if definition.Name == "bad" {
		return errors.New("its schema is odd")
	}
	return nil
}
func (choosy) MaxTools() int                        { return 2 }
func (choosy) Shortened(*invoker.Definition) string { return "" }

// A request that the model cannot be asked as it is fails, and leaves nothing out.
func TestSampleToolsAreRefused(t *testing.T) {
	for want, tools := range map[string][]invoker.Definition{
		`The model cannot be offered the tool "bad": its schema is odd.`:                    {ownTool("good"), ownTool("bad")},
		`The model cannot be offered 3 tools: the model's API accepts 2 tools per request.`: {ownTool("a"), ownTool("b"), ownTool("c")},
		`Two tools for the model have the name "a".`:                                        {ownTool("a"), ownTool("a")},
		`The tool choice is "required", but the request has no tools.`:                      {},
		`The model cannot be offered the tool "own": it is only for its app, not for models (`: {{
			Name: "own", InputSchema: json.RawMessage(`{}`), Metadata: canister.Fields{"mcp/_meta": json.RawMessage(`{"ui":{"visibility":["app"]}}`)},
		}},
	} {
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}},
			conversetest.Line{Text: "done", Expect: told(want)},
		)
		talk := converse.New(choosy{script}, newRoster(t, looper(tools...)), nil)
		play(t, talk, "go")
		played(t, script)
		if code := results(talk.History())[0].Code; code != string(invoker.InvalidArguments) {
			t.Errorf("%s: the code is %s", want, code)
		}
	}
}

// What a model writes for a call is an object, or an error; of an answer that was cut
// off the whole calls count.
func TestSampleWithBrokenCalls(t *testing.T) {
	for _, test := range []struct {
		line conversetest.Line
		want string
	}{
		{
			conversetest.Line{Calls: []conversetest.Call{{Name: "add", Arguments: `[1]`}}},
			"The model asked for the tool \"add\" with arguments that are not a JSON object.",
		},
		{conversetest.Line{Text: "I", Calls: []conversetest.Call{{Name: "add", Arguments: `{"a":`}}, Finish: canister.FinishLength}, "I/maxTokens"},
		{
			conversetest.Line{
				Text: "I", Calls: []conversetest.Call{{Name: "add", Arguments: `[cut off]`}}, Finish: canister.FinishContentFilter,
			}, "I/content_filter",
		},
	} {
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}},
			test.line,
			conversetest.Line{Text: "done", Expect: told(test.want)},
		)
		play(t, converse.New(script, newRoster(t, looper(ownTool("add"))), nil), "go")
		played(t, script)
	}
}

// A model that may use no tool knows them, and what it asks for all the same is no use.
func TestSampleWithoutInvocations(t *testing.T) {
	tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		request := sampleRequest("question")
		request.Tools, request.ToolChoice = []invoker.Definition{ownTool("add")}, invoker.ToolsNone
		result, err := call.Sample(ctx, request)
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(result.Text, result.Finish, len(result.ToolUses)))}, nil
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
		conversetest.Line{Text: "no", Calls: []conversetest.Call{{Name: "add", Arguments: `{}`}}, Expect: func(r *converse.Request) error {
			if !r.NoInvocations || len(r.Tools.Definitions) != 1 {
				return fmt.Errorf("the request is %+v", r)
			}
			return nil
		}},
		conversetest.Line{Text: "done", Expect: told("noendTurn0")},
	)
	play(t, converse.New(script, newRoster(t, tool), nil), "go")
	played(t, script)
}

// The limits of the turn hold for such a loop, and secrets stay out of it.
func TestSampleWithToolsWithinLimits(t *testing.T) {
	line := func() conversetest.Line {
		return conversetest.Line{Calls: []conversetest.Call{{Name: "add", Arguments: `{"key":"hunter2"}`}}, Usage: usage(1, 1),
			Expect: func(r *converse.Request) error {
				if text := fmt.Sprintf("%s", r.History); strings.Contains(text, "hunter2") ||
					strings.Contains(r.Tools.Definitions[0].Description+string(r.Tools.Definitions[0].InputSchema), "hunter2") {
					return fmt.Errorf("the model was told %s", text)
				}
				return nil
			}}
	}
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("loop", "{}")}}, line(), line(), line())
	secret := invoker.Definition{Name: "add", Description: "Adds hunter2.", InputSchema: json.RawMessage(`{"type":"object","title":"hunter2"}`)}
	talk := converse.New(script, newRoster(t, looper(secret)), &converse.Options{
		Limits: converse.Limits{Exchanges: 4}, Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") },
	})
	turn := last(t, play(t, talk, "go"))
	played(t, script)
	if result := results(talk.History())[0]; turn.Exchanges != 4 || turn.Reason != converse.ReasonExchanges ||
		result.Code != string(invoker.Denied) || !strings.Contains(canister.TextOf(result.Content), "limit of 4 exchanges") {
		t.Errorf("the turn is %+v, the result %+v", turn, result)
	}
}

// Nothing of the tools of a request, of their uses and of their results reaches the
// model with a secret in it.
func TestSampleWithToolsTellsNoSecret(t *testing.T) {
	object, metadata := json.RawMessage(`{"title":"hunter2"}`), canister.Fields{"hunter2": json.RawMessage(`"hunter2"`)}
	used := canister.Fields{"io.github.consort-go/message": json.RawMessage(`{"thought":"hunter2"}`), "signature": json.RawMessage(`"hunter2"`)}
	tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		request := sampleRequest("question")
		request.Tools = []invoker.Definition{{Name: "add", Title: "hunter2", InputSchema: object, OutputSchema: object, Metadata: metadata}}
		request.Messages = append(request.Messages,
			invoker.SampleMessage{Role: "assistant", ToolUses: []invoker.ToolUse{{ID: "u", Name: "add", Input: object, Metadata: used}}},
			invoker.SampleMessage{Role: "user", ToolResults: []invoker.ToolResult{{ToolUseID: "u", Content: canister.Texts("hunter2"), Metadata: metadata}}})
		_, err := call.Sample(ctx, request)
		return invoker.Output{}, err
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
		conversetest.Line{Text: "five", Expect: func(r *converse.Request) error {
			tool := r.Tools.Definitions[0]
			text := fmt.Sprintf("%s %s %s %s %s", r.History, tool.Title, tool.InputSchema, tool.OutputSchema, tool.Metadata)
			if strings.Contains(text, "hunter2") || strings.Count(text, "[redacted]") != 9 {
				return fmt.Errorf("%d times in %s", strings.Count(text, "[redacted]"), text)
			}
			return nil
		}},
		conversetest.Line{Text: "done"},
	)
	play(t, converse.New(script, newRoster(t, tool), &converse.Options{
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") },
	}), "go")
	played(t, script)
}

// A request that came by another way than Call.Sample is checked too.
func TestSampleChecksTheTools(t *testing.T) {
	tool := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		request := sampleRequest("question")
		request.Messages = append(request.Messages, invoker.SampleMessage{
			Role: "assistant", ToolUses: []invoker.ToolUse{{ID: "u"}},
		}, invoker.SampleMessage{Role: "user", ToolResults: []invoker.ToolResult{{ToolUseID: "v"}}})
		_, err := call.Model(ctx, request)
		return invoker.Output{}, err
	})
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}},
		conversetest.Line{Text: "done", Expect: told(`Message 2 has a result for the tool use "v"`)},
	)
	play(t, converse.New(script, newRoster(t, tool), nil), "go")
	played(t, script)
}

// What the tools of such a request take is reserved of the budget, and what it cost
// is settled.
func TestSampleWithToolsOnBudget(t *testing.T) {
	long := ownTool("add")
	long.Description = strings.Repeat("long ", 4000)
	for _, test := range []struct {
		tool  invoker.Definition
		lines []conversetest.Line
		spent int64
	}{
		{ownTool("add"), []conversetest.Line{{Text: "five", Usage: usage(7, 3)}, {Text: "done", Usage: usage(5, 5), Expect: told("five/endTurn")}}, 40},
		{long, []conversetest.Line{{Text: "done", Usage: usage(5, 5), Expect: told("The model was not asked")}}, 30},
	} {
		p := policy(tokens(12000))
		script := conversetest.NewScript(append([]conversetest.Line{{Calls: []conversetest.Call{call("loop", "{}")}, Usage: usage(10, 10)}}, test.lines...)...)
		play(t, converse.New(script, newRoster(t, looper(test.tool)), &converse.Options{ID: "talk", Budget: p}), "go")
		played(t, script)
		spent(t, p, test.spent, test.spent)
	}
}
