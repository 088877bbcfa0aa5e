// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// big is a JSON string of that many bytes.
func big(bytes int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`) }

// oddOutputs are what tools return that no history can be written out with, or that
// is large where nobody looks.
func oddOutputs() map[string]invoker.Output {
	bad := json.RawMessage("{nope")
	deep := json.RawMessage(strings.Repeat("[", 9500) + strings.Repeat("]", 9500))
	text := func(extra canister.Extra) []canister.Content {
		return []canister.Content{canister.TextContent{Text: "the text", Extra: extra}}
	}
	return map[string]invoker.Output{
		"metadata, not JSON": {Content: canister.Texts("the text"), Metadata: canister.Fields{"a": bad, "b": json.RawMessage("1")}},
		"metadata, deep":     {Content: canister.Texts("the text"), Metadata: canister.Fields{"a": deep}},
		"metadata, not UTF-8": {
			Content: canister.Texts("the text"), Metadata: canister.Fields{"\xff": json.RawMessage("1"), "a": json.RawMessage("\"\xff\"")},
		},
		"metadata, large":        {Content: canister.Texts("the text"), Metadata: canister.Fields{"a": big(1 << 20)}},
		"of a content, not JSON": {Content: text(canister.Extra{Metadata: canister.Fields{"a": bad}})},
		"of a content, large":    {Content: text(canister.Extra{Metadata: canister.Fields{"mcp/block": big(1 << 20)}})},
		"of a content, in many": {Content: append(text(canister.Extra{}),
			text(canister.Extra{Metadata: canister.Fields{"a": big(600), "b": big(600)}})...)},
		"unknown, not JSON":     {Content: text(canister.Extra{Unknown: canister.Fields{"a": bad}})},
		"unknown, the form's":   {Content: text(canister.Extra{Unknown: canister.Fields{"text": json.RawMessage("1")}})},
		"unknown, large":        {Content: text(canister.Extra{Unknown: canister.Fields{"a": big(1 << 20)}})},
		"structured, deep":      {Content: []canister.Content{canister.Text("the text"), canister.StructuredContent{JSON: deep}}},
		"structured, not UTF-8": {Content: []canister.Content{canister.Text("the text"), canister.StructuredContent{JSON: json.RawMessage("\"\xff\"")}}},
		"structured, empty":     {Content: []canister.Content{canister.Text("the text"), canister.StructuredContent{}}},
		"media type, large": {Content: []canister.Content{
			canister.Text("the text"), canister.ImageContent{Data: []byte("x"), MIME: strings.Repeat("x", 1<<20)},
		}},
		"contents, nil and pointers": {Content: []canister.Content{canister.Text("the text"), nil, &canister.TextContent{Text: "x"}}},
	}
}

func TestOddResultsEnterWholeAndBounded(t *testing.T) {
	const limit = 1000
	for name, output := range oddOutputs() {
		for _, failure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", name, failure), func(t *testing.T) {
				tool := fn("echo", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
					call.Report(invoker.Progress{Partial: output.Content})
					if failure {
						return invoker.Output{}, &invoker.Failure{Code: invoker.ExecutionFailed, Content: output.Content, Metadata: output.Metadata}
					}
					return output, nil
				})
				var spilled atomic.Int32 // of calls side by side
				talk := converse.New(twoCalls(), newRoster(t, tool), &converse.Options{
					ID: "odd", Log: history.NewMemory(), Limits: converse.Limits{ResultBytes: limit},
					Spill: func(context.Context, string, canister.Content) (canister.LinkContent, error) {
						spilled.Add(1)
						return canister.LinkContent{URI: "file:///spilled", Name: "spilled"}, nil
					},
				})
				if err := sendTwice(t, talk); err != nil {
					t.Fatal(err)
				}
				for _, result := range results(talk.History()) {
					line, err := canister.Marshal(result)
					if err != nil {
						t.Fatal(err)
					}
					if len(line) > limit+1500 {
						t.Errorf("the result has %d bytes", len(line))
					}
					text := canister.TextOf(result.Content)
					if !strings.Contains(text, "the text") {
						t.Errorf("the result is %q", text)
					}
					if strings.Contains(name, "metadata, large") && (!strings.Contains(text, "bytes of metadata omitted") || spilled.Load() == 0) {
						t.Errorf("nothing says what was cut: %q, and %d pieces were spilled", text, spilled.Load())
					}
					if name == "metadata, not JSON" && (!strings.Contains(text, `no JSON form: "a"`) || string(result.Metadata["b"]) != "1") {
						t.Errorf("the result is %q with %v", text, result.Metadata)
					}
				}
			})
		}
	}
}

func TestMetadataThatFitsIsKept(t *testing.T) {
	tool := fn("echo", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{
			Content:  []canister.Content{canister.TextContent{Text: "x", Extra: canister.Extra{Metadata: canister.Fields{"a": big(300)}}}},
			Metadata: canister.Fields{"b": big(300)},
		}, nil
	})
	talk := converse.New(twoCalls(), newRoster(t, tool), &converse.Options{Limits: converse.Limits{ResultBytes: 1000}})
	play(t, talk, "Go.")
	result := results(talk.History())[0]
	if text := result.Content[0].(canister.TextContent); len(text.Metadata["a"]) != 300 || len(result.Metadata["b"]) != 300 || len(result.Content) != 1 {
		t.Errorf("result = %+v", result)
	}
}

// What cannot be written out does not enter, wherever it comes from, and the
// conversation goes on.
func TestWhatCannotBeWrittenOutDoesNotEnter(t *testing.T) {
	bad := canister.Extra{Metadata: canister.Fields{"a": json.RawMessage("{nope")}}
	contents := map[string]canister.Content{
		"nil": nil, "pointer": &canister.TextContent{Text: "x"}, "metadata": canister.TextContent{Text: "x", Extra: bad},
		"structured": canister.StructuredContent{JSON: json.RawMessage("{nope")},
	}
	for name, content := range contents {
		t.Run(name, func(t *testing.T) {
			reply := func(request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
				return func(yield func(converse.ModelEvent, error) bool) {
					yield(converse.Reply{Message: canister.Assistant{
						Head: canister.Head{ID: request.NewID()}, Content: []canister.Content{content}, Finish: canister.FinishStop,
					}}, nil)
				}
			}
			model := &onceModel{Script: twoCalls(), reply: reply}
			talk := converse.New(model, newRoster(t, echo("echo")), nil)
			_, said := talk.Ask(t.Context(), content)
			added := talk.Add(t.Context(), canister.Document{Content: []canister.Content{content}})
			if said == nil || added == nil || len(talk.History()) != 0 {
				t.Errorf("Send says %v, Add says %v, and the history is %v", said, added, talk.History())
			}
			_, replied := talk.Ask(t.Context(), canister.Text("Go."))
			if replied == nil || !strings.Contains(replied.Error(), "the reply cannot be added to the history") {
				t.Errorf("a bad reply is the error %v", replied)
			}
			if err := sendTwice(t, talk); err != nil {
				t.Error(err)
			}
			taken := converse.New(twoCalls(), nil,
				&converse.Options{History: []canister.Canister{canister.User{Head: canister.Head{ID: "1"}, Content: []canister.Content{content}}}})
			if _, err := taken.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(), "canister 0 of the history is not valid") {
				t.Errorf("a bad history is the error %v", err)
			}
		})
	}
}

// onceModel gives one reply that is not in the script.
type onceModel struct {
	*conversetest.Script
	reply func(*converse.Request) iter.Seq2[converse.ModelEvent, error]
}

func (m *onceModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if reply := m.reply; reply != nil {
		m.reply = nil
		return reply(request)
	}
	return m.Script.Exchange(ctx, request)
}

func TestOptionsThatAreWrong(t *testing.T) {
	constant := func() string { return "the same" }
	for name, test := range map[string]struct {
		options converse.Options
		want    string
	}{
		"empty identities":  {converse.Options{NewID: func() string { return "" }}, "Options.NewID returned an empty ID"},
		"the same identity": {converse.Options{NewID: constant}, "Options.NewID has to return a new one each time"},
		"the same, logged":  {converse.Options{NewID: constant, ID: "a", Log: history.NewMemory()}, "Options.NewID has to return a new one each time"},
		"a log without ID":  {converse.Options{Log: history.NewMemory()}, "Options.Log needs Options.ID"},
		"a nil canister":    {converse.Options{History: []canister.Canister{nil}}, "canister 0 of the history is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			talk := converse.New(twoCalls(), newRoster(t, echo("echo")), &test.options)
			if done, ok := talk.Next().(converse.Done); !ok || done.Reason != converse.ReasonNothing {
				t.Errorf("next = %+v", talk.Next())
			}
			if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			for _, problem := range sequence.Check(talk.History()) {
				t.Error(problem)
			}
		})
	}
}

// Identities that are those of the history are refused before they make it one that
// nobody can take up.
func TestIdentitiesThatBeginAnew(t *testing.T) {
	store := history.NewMemory()
	for start := range 2 {
		talk := converse.New(twoCalls(), newRoster(t, echo("echo")), &converse.Options{ID: "talk", Log: store, NewID: counterSafe()})
		_, err := talk.Ask(t.Context(), canister.Text("Go."))
		if (err == nil) != (start == 0) {
			t.Errorf("start %d: %v", start, err)
		}
	}
	var all []canister.Canister
	for c, err := range store.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	sound(t, all)
}

func TestEventsAreRangedOverOnce(t *testing.T) {
	talk := converse.New(twoCalls(), newRoster(t, echo("echo")), nil)
	events := talk.Send(t.Context(), canister.Text("Go."))
	for range 2 {
		var failed error
		for _, err := range events {
			failed = errors.Join(failed, err)
		}
		if failed != nil && !strings.Contains(failed.Error(), "ranged over only once") {
			t.Error(failed)
		}
	}
	users := 0
	for _, c := range talk.History() {
		if c.Kind() == canister.KindUser {
			users++
		}
	}
	if users != 1 {
		t.Errorf("the message stands %d times in the history", users)
	}
}
