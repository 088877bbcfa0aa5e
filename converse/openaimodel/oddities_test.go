// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/dialects"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

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
			got := modeltest.Run(t.Context(), model, newRequest())
			modeltest.Check(t, got, oddity.Want)
			if t.Failed() {
				t.Logf("%s\n%s", oddity.About, oddity.Replay.Body()[:min(2000, len(oddity.Replay.Body()))])
			}
		})
	}
}

// TestResponsesOddities reads every stream of Responses that servers have been seen to send.
func TestResponsesOddities(t *testing.T) {
	server := start(t, openaiserver.Script{}, nil)
	for _, oddity := range openaiserver.ResponsesOddities() {
		t.Run(oddity.Name, func(t *testing.T) {
			model := newModel(t, openaiserver.OddityURL(server.URL(), oddity.Name), openaimodel.Options{API: "responses", MaxRetries: -1})
			modeltest.Check(t, modeltest.Run(t.Context(), model, newRequest()), oddity.Want)
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
		got := modeltest.Run(t.Context(), model, newRequest())
		if len(got.Retries) != retries || got.Err == nil {
			t.Errorf("%s: %d retries, want %d (%v)", name, len(got.Retries), retries, got.Err)
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
				modeltest.Check(t, modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest()), test.want)
			})
		}
	}
}

// TestTextAfterEmptyArguments: only the beginning of an object replaces the arguments {}, and other text is no call.
func TestTextAfterEmptyArguments(t *testing.T) {
	for _, text := range []string{"null", "}", "7"} {
		server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			for _, function := range []string{`{"name":"f","arguments":"{}"}`, fmt.Sprintf(`{"arguments":%q}`, text)} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":%s}]}}]}\n\n", function)
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n")
		})
		got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
		if calls := got.Reply.Invocations; got.Err != nil || len(calls) != 1 || calls[0].Name != "f" || calls[0].Arguments != "{}" {
			t.Errorf("%s: %+v", text, got)
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
			got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
			modeltest.Check(t, got, openaiserver.Want{Text: "Half an", Problem: openaiserver.ServerSaid, Message: reason})
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
	got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
	modeltest.Check(t, got, openaiserver.Want{Text: "Hi.", Calls: []openaiserver.WantCall{{ID: "a", Name: "f", Arguments: "{}"}}})
}

// TestCitationsOfChat: a text has the sources that it cites, once, from a stream and from a whole answer.
func TestCitationsOfChat(t *testing.T) {
	const source = `{"type":"url_citation","url_citation":{"url":"https://a.example","start_index":0,"end_index":3}}`
	for _, form := range []string{
		`{"choices":[{"message":{"content":"Hi.","annotations":[` + source + `]},"finish_reason":"stop"}]}`,
		`data: {"choices":[{"delta":{"content":"Hi."}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"content":"","annotations":[` + source + `]}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"annotations":null},"message":{"content":"Hi.","annotations":[` + source + `]},"finish_reason":"stop"}]}` + "\n\n",
	} {
		server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, form) })
		got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
		modeltest.Check(t, got, openaiserver.Want{Text: "Hi."})
		text, _ := got.Reply.Message.Content[0].(canister.TextContent)
		var sources []struct {
			Citation struct{ URL string } `json:"url_citation"`
		}
		if err := json.Unmarshal(text.Metadata["io.github.consort-go/citations"], &sources); err != nil || len(sources) != 1 || sources[0].Citation.URL != "https://a.example" {
			t.Errorf("%v, %s", err, text.Metadata)
		}
	}
}

// TestSpokenAnswers: the text of an answer in audio is its transcript.
func TestSpokenAnswers(t *testing.T) {
	for _, form := range []string{
		`{"choices":[{"message":{"content":null,"audio":{"id":"audio_1","data":"UklGRg==","transcript":"Hi there."}},"finish_reason":"stop"}]}`,
		`data: {"choices":[{"delta":{"audio":{"id":"audio_1","transcript":"Hi "}}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"audio":{"data":"UklGRg=="}}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"audio":{"transcript":"there."}}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n",
	} {
		server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, form) })
		modeltest.Check(t, modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest()), openaiserver.Want{Text: "Hi there."})
	}
}

// TestCutBeforeArguments: a call that was cut off before its arguments is not
// one without arguments, which would run.
func TestCutBeforeArguments(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"drop_all",`+
				`"arguments":""}}]},"finish_reason":"length"}]}`)
	})
	got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
	calls := got.Reply.Invocations
	if got.Err != nil || len(calls) != 2 || calls[0].Arguments != "{}" || calls[1].Name != "drop_all" ||
		json.Valid([]byte(calls[1].Arguments)) || got.Reply.Message.Finish != canister.FinishLength {
		t.Errorf("%+v", got)
	}
}

// TestDoneBeforeArguments: a proxy that loses its server in the middle may end the stream as usual,
// but without a finish reason. A call in one piece is not cut off.
func TestDoneBeforeArguments(t *testing.T) {
	call := `{"tool_calls":[{"index":0,"id":"a","function":{"name":"drop_all","arguments":""}}]}`
	for form, want := range map[string]string{
		"data: {\"choices\":[{\"delta\":%s}]}\n\ndata: [DONE]\n\n":                            modelapi.CutOffArguments,
		"data: {\"choices\":[{\"delta\":%s,\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n": "{}",
		`{"choices":[{"message":%s}]}`:                                                        "{}",
	} {
		server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, form, call) })
		got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
		if calls := got.Reply.Invocations; got.Err != nil || len(calls) != 1 || calls[0].Arguments != want {
			t.Errorf("%s: %+v", form, got)
		}
	}
}

// TestDialects has an exchange with each server, as it was recorded.
func TestDialects(t *testing.T) {
	for _, api := range []string{"chat", "responses"} {
		for _, dialect := range dialects.All(t, api) {
			dialect.Check(t, func(t *testing.T, url string, whole bool) converse.Model {
				return newModel(t, url, openaimodel.Options{API: api, NoStream: whole, MaxRetries: -1})
			}, func() *converse.Request { return newRequest() })
		}
	}
}
