// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// outcome is what came of an exchange.
type outcome struct {
	text, reasoning string // of the deltas
	began           []string
	retries         []converse.Retry
	reply           converse.Reply
	replies         int
	err             error
}

func newRequest(history ...canister.Canister) *converse.Request {
	n := 0
	if history == nil {
		history = []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello?")}}
	}
	return &converse.Request{
		History: history,
		Tools:   &converse.Toolset{},
		NewID:   func() string { n++; return fmt.Sprintf("new-%d", n) },
	}
}

func run(ctx context.Context, model converse.Model, request *converse.Request) (out outcome) {
	for event, err := range model.Exchange(ctx, request) {
		switch event := event.(type) {
		case converse.Delta:
			out.text += event.Text
			out.reasoning += event.Reasoning
			if event.Invocation != "" {
				out.began = append(out.began, event.Invocation)
			}
		case converse.Retry:
			out.retries = append(out.retries, event)
		case converse.Reply:
			out.reply = event
			out.replies++
		}
		if err != nil {
			out.err = err
		}
	}
	return out
}

func newModel(t testing.TB, url string, options openaimodel.Options) *openaimodel.Model {
	t.Helper()
	options.BaseURL = url
	model, err := openaimodel.New("m-1", &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

func start(t testing.TB, script openaiserver.Script, options *openaiserver.Options) *openaiserver.Server {
	t.Helper()
	server, err := openaiserver.Start(script, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// TestOddities reads every stream that servers have been seen to send.
func TestOddities(t *testing.T) {
	server := start(t, openaiserver.Script{}, nil)
	for _, oddity := range openaiserver.Oddities() {
		t.Run(oddity.Name, func(t *testing.T) {
			model := newModel(t, openaiserver.OddityURL(server.URL(), oddity.Name), openaimodel.Options{MaxRetries: -1})
			got := run(t.Context(), model, newRequest())
			checkWant(t, got, oddity.Want)
			if t.Failed() {
				t.Logf("%s\n%s", oddity.About, oddity.Replay.Body()[:min(2000, len(oddity.Replay.Body()))])
			}
		})
	}
}

// TestBrokenBeforeWordsIsRetried: an answer that breaks off before it says anything is
// asked for again, as often as MaxRetries allows and no more.
func TestBrokenBeforeWordsIsRetried(t *testing.T) {
	server := start(t, openaiserver.Script{}, nil)
	for name, retries := range map[string]int{"eof-empty": 1, "reset-in-call": 0, "eof-in-text": 0, "html": 0, "error-first": 1} {
		model := newModel(t, openaiserver.OddityURL(server.URL(), name), openaimodel.Options{MaxRetries: 1})
		got := run(t.Context(), model, newRequest())
		if len(got.retries) != retries || got.err == nil {
			t.Errorf("%s: %d retries, want %d (%v)", name, len(got.retries), retries, got.err)
		}
	}
}

// TestMoreDialects are shapes beyond the oddities, as streams of one chunk and
// as whole answers.
func TestMoreDialects(t *testing.T) {
	f, g := openaiserver.WantCall{Name: "f", Arguments: "{}"}, openaiserver.WantCall{Name: "g", Arguments: "{}"}
	for name, test := range map[string]struct {
		message string
		want    openaiserver.Want
	}{
		"nothing but names": {`{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]}`, openaiserver.Want{Calls: []openaiserver.WantCall{f, g}}},
		"names at one index": {
			`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":null}},{"index":0,"function":{"name":"g","arguments":""}}]}`,
			openaiserver.Want{Calls: []openaiserver.WantCall{f, g}},
		},
		"the same twice": {
			`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":0,"function":{"name":"f","arguments":"{}"}}]}`,
			openaiserver.Want{Calls: []openaiserver.WantCall{f, f}},
		},
		"one call, no list": {
			`{"tool_calls":{"id":"x","function":{"name":"f"}}}`, openaiserver.Want{Calls: []openaiserver.WantCall{{ID: "x", Name: "f", Arguments: "{}"}}},
		},
		"an empty call": {`{"content":"Hi.","tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":""}}]}`, openaiserver.Want{Text: "Hi."}},
		"function_call": {`{"function_call":{"name":"f","arguments":"{}"}}`, openaiserver.Want{Calls: []openaiserver.WantCall{f}}},
		"parts": {
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Hi."}]}`,
			openaiserver.Want{Text: "Hi.", Reasoning: "Hm."},
		},
		"reasoning twice": {
			`{"content":"Hi.","reasoning":"Hm.","reasoning_content":"Hm.","reasoning_details":[{}]}`, openaiserver.Want{Text: "Hi.", Reasoning: "Hm."},
		},
		"numbers for texts": {`{"content":7,"tool_calls":[1,null,{"id":3,"function":{"name":4}}]}`, openaiserver.Want{}},
	} {
		for _, form := range []string{
			"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"delta\":%s}]}\n\n" +
				"data: {\"choices\":[{\"delta\":null,\"finish_reason\":\"end_turn\"}]}\n\n", `{"choices":[{"message":%s,"finish_reason":"end_turn"}]}`,
		} {
			t.Run(name, func(t *testing.T) {
				server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, form, test.message) })
				checkWant(t, run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest()), test.want)
			})
		}
	}
}

// TestBrokenOff: a reason to finish can say that the answer is not whole.
func TestBrokenOff(t *testing.T) {
	for _, reason := range []string{"error", "insufficient_system_resource", "network_error"} {
		for _, form := range []string{"data: %s\n\ndata: [DONE]\n\n", "%s"} {
			server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, form, `{"choices":[{"finish_reason":"`+reason+`","message":{"content":"Half an"}}]}`)
			})
			got := run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
			checkWant(t, got, openaiserver.Want{Text: "Half an", Problem: openaiserver.ServerSaid, Message: reason})
		}
	}
}

// TestWholeBehindDeltas: a message that repeats what was streamed counts once.
func TestWholeBehindDeltas(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		for _, choice := range []string{
			`{"delta":{"content":"Hi."}}`, `{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}`,
			`{"finish_reason":"stop","message":{"content":"Hi.","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}`,
		} {
			fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", choice)
		}
	})
	got := run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
	checkWant(t, got, openaiserver.Want{Text: "Hi.", Calls: []openaiserver.WantCall{{ID: "a", Name: "f", Arguments: "{}"}}})
}

// TestCutBeforeArguments: a call that was cut off before its arguments is not
// one without arguments, which would run.
func TestCutBeforeArguments(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"drop_all","arguments":""}}]},"finish_reason":"length"}]}`)
	})
	got := run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
	calls := got.reply.Invocations
	if got.err != nil || len(calls) != 2 || calls[0].Arguments != "{}" || calls[1].Name != "drop_all" ||
		json.Valid([]byte(calls[1].Arguments)) || got.reply.Message.Finish != canister.FinishLength {
		t.Errorf("%+v", got)
	}
}

func checkWant(t *testing.T, got outcome, want openaiserver.Want) {
	t.Helper()
	if got.text != want.Text+want.Refusal || got.reasoning != want.Reasoning {
		t.Errorf("deltas say %.80q and think %q, want %.80q and %q", got.text, got.reasoning, want.Text+want.Refusal, want.Reasoning)
	}
	if want.Problem != openaiserver.NoProblem {
		checkProblem(t, got, want)
		return
	}
	if got.err != nil {
		t.Fatal(got.err)
	}
	message := got.reply.Message
	if text := canister.TextOf(message.Content); text != want.Text+want.Refusal {
		t.Errorf("message %.80q", text)
	}
	if want.Usage == nil != (message.Usage == nil) {
		t.Errorf("usage %v, want %v", message.Usage, want.Usage)
	} else if u := message.Usage; u != nil && (u.Input != int64(want.Usage.PromptTokens) || u.Output != int64(want.Usage.CompletionTokens)) {
		t.Errorf("usage %+v, want %+v", u, want.Usage)
	}
	if finish := wantFinish(want); message.Finish != finish {
		t.Errorf("finish %q, want %q", message.Finish, finish)
	}
	checkCalls(t, got, want.Calls)
}

func checkProblem(t *testing.T, got outcome, want openaiserver.Want) {
	t.Helper()
	var failed *converse.ModelError
	if !errors.As(got.err, &failed) || got.replies != 0 {
		t.Fatalf("error %v and %d replies", got.err, got.replies)
	}
	if !strings.Contains(failed.Message, want.Message) || failed.Status != 200 {
		t.Errorf("error %v", failed)
	}
	if retry := want.Problem != openaiserver.NotAStream; failed.Retryable != retry {
		t.Errorf("retryable %v: %v", failed.Retryable, failed)
	}
}

func wantFinish(want openaiserver.Want) canister.Finish {
	switch {
	case want.Finish == "length" || want.Finish == "content_filter":
		return canister.Finish(want.Finish)
	case len(want.Calls) > 0:
		return canister.FinishInvocations
	case want.Refusal != "":
		return canister.FinishRefusal
	}
	return canister.FinishStop
}

func checkCalls(t *testing.T, got outcome, want []openaiserver.WantCall) {
	t.Helper()
	calls := got.reply.Invocations
	if len(calls) != len(want) || len(got.began) != len(want) {
		t.Fatalf("%d calls, %d announced, want %d: %+v", len(calls), len(got.began), len(want), calls)
	}
	taken := map[string]bool{}
	for i, call := range calls {
		w := want[i]
		if call.Name != w.Name || call.Arguments != w.Arguments || w.ID != "" && call.CallID != w.ID {
			t.Errorf("call %+v, want %+v", call, w)
		}
		if call.CallID == "" || taken[call.CallID] || call.ID == "" || call.Message != got.reply.Message.ID {
			t.Errorf("identities of call %+v", call)
		}
		taken[call.CallID] = true
		if json.Valid([]byte(call.Arguments)) == w.Broken {
			t.Errorf("arguments %q, broken %v", call.Arguments, w.Broken)
		}
		if w.Extra != nil && !strings.Contains(string(call.Metadata["openaimodel.extra_content"]), string(w.Extra)) {
			t.Errorf("extra content %s, want %s", call.Metadata, w.Extra)
		}
	}
}
