// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// start starts a scripted server and returns it with its base URL.
func start(t *testing.T, script openaiserver.Script, options *openaiserver.Options) (*openaiserver.Server, string) {
	t.Helper()
	server, err := openaiserver.Start(script, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server, strings.TrimSuffix(server.URL(), "/v1")
}

func newModel(t *testing.T, name, base string, options anthropicmodel.Options) *anthropicmodel.Model {
	t.Helper()
	options.BaseURL = base
	model, err := anthropicmodel.New(name, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// request returns a request with a history.
func request(history ...canister.Canister) *converse.Request {
	n := 0
	return &converse.Request{History: history, Tools: &converse.Toolset{}, NewID: func() string { n++; return fmt.Sprintf("new-%d", n) }}
}

func user(id, text string) canister.User {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// run returns the text of the deltas and the reply of an exchange.
func run(ctx context.Context, model converse.Model, request *converse.Request) (text string, reply converse.Reply, err error) {
	for event, failed := range model.Exchange(ctx, request) {
		switch event := event.(type) {
		case converse.Delta:
			text += event.Text
		case converse.Reply:
			reply = event
		}
		err = failed
	}
	return text, reply, err
}

// randomAnswers are a script that never ends: answers with and without text, and up to
// three calls at once, some of which fail.
func randomAnswers(r *rand.Rand) openaiserver.Respond {
	return func(request *openaiserver.Request) openaiserver.Reply {
		m := openaiserver.Message{Delta: 1 + r.IntN(40), Reasoning: []string{"", "Let me think. é"}[r.IntN(2)]}
		if r.IntN(3) > 0 {
			m.Text = strings.Repeat("Some words. 🎻 ", 1+r.IntN(4))
		}
		if request.Position%3 != 2 {
			for range r.IntN(4) {
				m.Calls = append(m.Calls, openaiserver.Call{
					Name: []string{"local__echo", "local__fail", "no_such_tool"}[r.IntN(3)], Arguments: []string{`{"text":"a"}`, `{}`, `{"te`}[r.IntN(3)],
				})
			}
		}
		if m.Text == "" && len(m.Calls) == 0 {
			m.Text = "Done."
		}
		return m
	}
}

// TestMessagesAreNeverRefused: whatever the answers and calls are, a strict server takes
// each request, and each request begins with the bytes of the one before.
func TestMessagesAreNeverRefused(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			server, base := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: randomAnswers(r)}}}, nil)
			model := newModel(t, "claude-test", base, anthropicmodel.Options{NoStream: seed%2 == 0, Thinking: []string{"", "adaptive", "2048"}[seed%3]})
			roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.ServerTools()...))
			if err != nil {
				t.Fatal(err)
			}
			talk := converse.New(model, roster, &converse.Options{OwnRoster: true, Instructions: "Be kind."})
			defer talk.Close(t.Context())
			for turn := range 10 {
				for _, err := range talk.Send(t.Context(), canister.Text(fmt.Sprint("Message ", turn))) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if faults := server.Faults(); faults != nil {
				t.Fatal(faults)
			}
			var before string
			for i, request := range server.Requests() {
				messages := gjson.GetBytes(request.Body, "messages").Raw
				if open := strings.TrimSuffix(before, "]"); !strings.HasPrefix(messages, open) {
					t.Fatalf("request %d does not begin with the one before:\n%s\n%s", i, open, messages)
				}
				if system := gjson.GetBytes(request.Body, "system.0.text").Str; !strings.Contains(system, "Be kind.") {
					t.Errorf("the system prompt is %q", system)
				}
				before = messages
			}
			if seed%3 > 0 && !strings.Contains(before, `"signature"`) {
				t.Error("no thinking is sent back")
			}
		})
	}
}

// TestThinkingStaysAtHome: thinking goes only to the server and the model that it came
// from.
func TestThinkingStaysAtHome(t *testing.T) {
	script := openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Reasoning: "Secret thoughts.", Text: "Hello."}}, {Reply: openaiserver.Message{Text: "Again."}},
	}}
	home, base := start(t, script, nil)
	other, otherBase := start(t, script, nil)
	_, reply, err := run(t.Context(), newModel(t, "m-1", base, anthropicmodel.Options{}), request(user("u", "Hi")))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, model, base string
		server            *openaiserver.Server
		carries           bool
	}{{"the same", "m-1", base, home, true}, {"another model", "m-2", base, home, false}, {"another server", "m-1", otherBase, other, false}} {
		if _, _, err := run(t.Context(), newModel(t, test.model, test.base, anthropicmodel.Options{}),
			request(user("u", "Hi"), reply.Message, user("v", "And?"))); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		requests := test.server.Requests()
		sent := gjson.GetBytes(requests[len(requests)-1].Body, "messages").Raw
		if strings.Contains(sent, "thoughts") != test.carries || strings.Contains(sent, "signature") != test.carries {
			t.Errorf("%s: %s", test.name, sent)
		}
	}
}

// TestPausedTurns: an answer that the server pauses is continued, and is one answer.
func TestPausedTurns(t *testing.T) {
	event := func(kind, data string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + data + "}\n\n"
	}
	paused := event("message_start", `"message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}`) +
		event("content_block_start", `"index":0,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}`) +
		event("content_block_delta", `"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"Oslo\",\"half\":\"\\ud83d\"}"}`) +
		event("message_delta", `"delta":{"stop_reason":"pause_turn","container":{"id":"cont_1","expires_at":"2026-01-01T00:00:00Z"}}`) + event("message_stop", `"x":1`)
	rest := event("message_start", `"message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}`) +
		event("content_block_start", `"index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`) +
		event("content_block_start", `"index":1,"content_block":{"type":"text","text":"Rain."}`) +
		event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}`) + event("message_stop", `"x":1`)
	var sent []string
	calls := 0
	respond := openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		sent = append(sent, string(r.Body))
		if calls++; calls == 1 {
			return openaiserver.Recording([]byte(paused))
		}
		return openaiserver.Recording([]byte(rest))
	})
	_, base := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: respond}}}, nil)
	model := newModel(t, "m", base, anthropicmodel.Options{HostedTools: []map[string]any{{"type": "web_search_20250305", "name": "web_search"}}})
	text, reply, err := run(t.Context(), model, request(user("u", "Weather?")))
	if err != nil || text != "Rain." || len(reply.Message.Content) != 3 {
		t.Fatalf("%v, %q, %+v", err, text, reply)
	}
	if block := gjson.Get(sent[1], "messages.1.content.0"); block.Get("type").Str != "server_tool_use" || block.Get("input.query").Str != "Oslo" ||
		strings.Contains(sent[1], `\ud83d`) || gjson.Get(sent[1], "container").Str != "cont_1" {
		t.Errorf("%s", sent[1])
	}
	if u := reply.Message.Usage; u == nil || *u != (canister.Usage{Input: 12, Output: 5, Context: 11}) {
		t.Errorf("both parts used %+v", u)
	}
	calls = 1
	if _, _, err := run(t.Context(), model, request(user("u", "Weather?"), reply.Message, user("v", "Sure?"))); err != nil {
		t.Fatal(err)
	}
	calls = 0
	refused := openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		if calls++; calls == 1 {
			return openaiserver.Recording([]byte(paused))
		}
		return openaiserver.Failure{Status: 529, Message: "Overloaded"}
	})
	_, busy := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: refused}}}, nil)
	_, _, err = run(t.Context(), newModel(t, "m", busy, anthropicmodel.Options{MaxRetries: -1}), request(user("u", "Weather?")))
	if failed, ok := errors.AsType[*converse.ModelError](err); !ok || failed.Usage == nil || failed.Usage.Total() != 6 {
		t.Errorf("after a part that used 6 tokens the error is %+v", err)
	}
	if blocks := gjson.Get(sent[2], "messages.1.content.#.type").Raw; blocks != `["server_tool_use","web_search_tool_result","text"]` {
		t.Errorf("%s", sent[2])
	}
}

// TestPausedWithoutEnd: an answer that the server pauses again and again is not complete.
func TestPausedWithoutEnd(t *testing.T) {
	paused := openaiserver.Recording([]byte(`{"type":"message","role":"assistant","model":"m","stop_reason":"pause_turn","content":[` +
		`{"type":"text","text":"Wait."}],"usage":{"input_tokens":1,"output_tokens":1}}`))
	server, base := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: paused}}}, &openaiserver.Options{Trust: true})
	model := newModel(t, "m", base, anthropicmodel.Options{NoStream: true})
	_, reply, err := run(t.Context(), model, request(user("u", "Weather?")))
	if err != nil || reply.Message.Finish != canister.FinishLength || len(server.Requests()) != 21 {
		t.Errorf("%v, %q after %d requests", err, reply.Message.Finish, len(server.Requests()))
	}
}

// TestPartsOfPausedTurns: a paused answer is continued although the server does not end its
// response, and a later part that breaks off before its first piece is requested again.
func TestPartsOfPausedTurns(t *testing.T) {
	event := func(kind, data string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + data + "}\n\n"
	}
	begin := event("message_start", `"message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}`)
	paused := begin + event("content_block_start", `"index":0,"content_block":{"type":"text","text":"First, "}`) +
		event("message_delta", `"delta":{"stop_reason":"pause_turn"}`) + event("message_stop", `"x":1`)
	rest := begin + event("content_block_start", `"index":0,"content_block":{"type":"text","text":"then."}`) +
		event("message_delta", `"delta":{"stop_reason":"end_turn"}`) + event("message_stop", `"x":1`)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		switch requests++; requests {
		case 1:
			io.WriteString(w, paused)
			http.NewResponseController(w).Flush()
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case 2:
			io.WriteString(w, begin)
		default:
			io.WriteString(w, rest)
		}
	}))
	t.Cleanup(server.Close)
	text, reply, err := run(t.Context(), newModel(t, "m", server.URL, anthropicmodel.Options{}), request(user("u", "How?")))
	if err != nil || text != "First, then." || requests != 3 || len(reply.Message.Content) == 0 {
		t.Errorf("%v, %q after %d requests", err, text, requests)
	}
}

// TestUsage: input that was read from the cache, or written to it, is part of the input,
// and the end of a stream replaces what its beginning said.
func TestUsage(t *testing.T) {
	const written = `"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},`
	for name, test := range map[string]struct {
		begin, end string
		want       canister.Usage
	}{
		"Anthropic": {`{"input_tokens":20,"cache_read_input_tokens":4000,` + written + `"output_tokens":1}`, `{"output_tokens":50}`,
			canister.Usage{Input: 4320, Cached: 4000, CacheWritten: 300, Output: 50}},
		"cumulative": {`{"input_tokens":20,"cache_read_input_tokens":4000,` + written + `"output_tokens":1}`,
			`{"input_tokens":25,"cache_read_input_tokens":4300,"cache_creation_input_tokens":310,"output_tokens":50,` +
				`"output_tokens_details":{"thinking_tokens":30}}`,
			canister.Usage{Input: 4635, Cached: 4300, CacheWritten: 310, Output: 50, Reasoning: 30}},
		"only the end": {`{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":20,"output_tokens":50}`, canister.Usage{Input: 20, Output: 50}},
		"end without": {
			`{"input_tokens":20,"cache_read_input_tokens":8,"output_tokens":1}`, `{"input_tokens":20,"output_tokens":50}`,
			canister.Usage{Input: 28, Cached: 8, Output: 50},
		},
		"end with zeros": {
			`{"input_tokens":20,"cache_read_input_tokens":8,"output_tokens":1}`,
			`{"input_tokens":0,"cache_read_input_tokens":null,"output_tokens":50}`, canister.Usage{Input: 28, Cached: 8, Output: 50},
		},
	} {
		answer := openaiserver.Recording([]byte(`data: {"type":"message_start","message":{"model":"m","usage":` + test.begin + "}}\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Rain."}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + test.end + "}\n\n" + `data: {"type":"message_stop"}` + "\n\n"))
		_, base := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: answer}}}, nil)
		_, reply, err := run(t.Context(), newModel(t, "m", base, anthropicmodel.Options{}), request(user("u", "Weather?")))
		if err != nil || reply.Message.Usage == nil || *reply.Message.Usage != test.want {
			t.Errorf("%s: %v, %+v, want %+v", name, err, reply.Message.Usage, test.want)
		}
	}
}

// TestBrokenMessages: errors carry the words and the code of the server.
func TestBrokenMessages(t *testing.T) {
	begin := "data: {\"type\":\"message_start\",\"message\":{}}\n\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Half\"}}\n\n"
	for name, test := range map[string]struct {
		reply      openaiserver.Reply
		says, code string
		retryable  bool
	}{
		"overloaded in the middle": {
			openaiserver.Recording([]byte(begin +
				"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")), "Overloaded",
			"overloaded_error", true,
		},
		"overloaded": {openaiserver.Failure{Status: 529, Message: "Overloaded"}, "Overloaded", "overloaded_error", true},
		"rate":       {openaiserver.Failure{Status: 429, Message: "Slow down"}, "Slow down", "rate_limit_error", true},
		"wrong":      {openaiserver.Failure{Status: 400, Message: "No"}, "No", "invalid_request_error", false},
		"cut":        {openaiserver.Recording([]byte(begin)), "ended before", "", true},
		"too long": {
			openaiserver.Failure{Status: 400, Message: "prompt is too long: 205000 tokens > 200000 maximum"}, "too long", converse.CodeContextLength, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, base := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: test.reply}}}, nil)
			_, _, err := run(t.Context(), newModel(t, "m", base, anthropicmodel.Options{MaxRetries: -1}), request(user("u", "Hi")))
			failed, _ := err.(*converse.ModelError)
			if failed == nil || !strings.Contains(failed.Message, test.says) || failed.Code != test.code || failed.Retryable != test.retryable {
				t.Errorf("%#v", err)
			}
		})
	}
}

// TestKeysStayAtHome: the environment's key goes to Anthropic, by https, and the
// environment's base URL does not change that.
func TestKeysStayAtHome(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-planted")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "planted-too")
	t.Setenv("ANTHROPIC_BASE_URL", "https://elsewhere.example")
	for base, want := range map[string]string{
		"": "sk-planted", "http://api.anthropic.com": "", "https://api.anthropic.com.evil": "", "https://example.com": "",
	} {
		var host, got, bearer string
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			host, got, bearer = r.URL.Host, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")
			return nil, fmt.Errorf("enough")
		})}
		_, _, _ = run(t.Context(), newModel(t, "m", base, anthropicmodel.Options{HTTPClient: client, MaxRetries: -1}), request(user("u", "Hi")))
		if got != want || bearer != "" || host == "elsewhere.example" || host == "" {
			t.Errorf("%q: sent %q and %q to %q", base, got, bearer, host)
		}
	}
}

// An error that quotes the request does not show the secrets that options put into it.
func TestErrorsWithoutSecretsOfOptions(t *testing.T) {
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		answer, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{ // strings have a JSON form
			"type": "invalid_request_error", "message": "Cannot use " + string(body[max(0, len(body)-250):]),
		}})
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(string(answer))), Request: r}, err
	})}
	_, _, err := run(t.Context(), newModel(t, "m", "https://example.com", anthropicmodel.Options{
		HTTPClient: client, ExtraBody: map[string]any{"zz_servers": []map[string]string{{"authorization_token": "planted-1234"}}},
	}), request(user("u", "Hi")))
	if err == nil || strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("%v", err)
	}
}

// roundTrip is a transport that answers itself.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// once returns a model of a server that gives one answer, and then another.
func once(t *testing.T, options anthropicmodel.Options, replies ...openaiserver.Reply) (*openaiserver.Server, *anthropicmodel.Model) {
	t.Helper()
	n := 0
	respond := openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply { n++; return replies[min(n, len(replies))-1] })
	server, base := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: respond}}}, nil)
	return server, newModel(t, "m", base, options)
}

// TestCallsThatWereCutOff do not run: their arguments are not JSON.
func TestCallsThatWereCutOff(t *testing.T) {
	for name, input := range map[string]string{"empty": `{}`, "partial": `{"path":"/"}`} {
		body := `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"rm","input":` +
			input + `}],"stop_reason":"max_tokens"}`
		_, model := once(t, anthropicmodel.Options{NoStream: true}, openaiserver.Recording([]byte(body)))
		_, reply, err := run(t.Context(), model, request(user("u", "Hi")))
		if err != nil || len(reply.Invocations) != 1 || json.Valid([]byte(reply.Invocations[0].Arguments)) {
			t.Errorf("%s: %v, %+v", name, err, reply.Invocations)
		}
	}
}

// TestWhatTheAPIWouldRefuse: histories and requests that have what the API does not take
// are sent without it.
func TestWhatTheAPIWouldRefuse(t *testing.T) {
	group := []canister.Canister{
		user("u", "Hi"), canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "call_0", Name: "f", Arguments: `{"a":"\ud83d"}`},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Code: "EXECUTION_FAILED", Content: []canister.Content{
			canister.Text("failed"), canister.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIME: "image/jpeg"},
		}},
	}
	server, model := once(t, anthropicmodel.Options{Thinking: "8192", MaxTokens: 9000}, openaiserver.Message{Text: "Fine."})
	bounded := request(group...)
	bounded.MaxTokens = 4096
	if _, _, err := run(t.Context(), model, bounded); err != nil {
		t.Fatal(err)
	}
	sent := string(server.Requests()[0].Body)
	if strings.Contains(sent, `\ud83d`) { // 400: "The request body is not valid JSON: no low surrogate in string"
		t.Errorf("half of a pair is sent: %s", sent)
	}
	for path, want := range map[string]string{
		"messages.2.content.0.content.#": "1", "messages.1.content.0.input.a": "\ufffd", "thinking": "", "max_tokens": "4096",
	} {
		if got := gjson.Get(sent, path).String(); got != want {
			t.Errorf("%s is %q, want %q: %s", path, got, want, sent)
		}
	}
	small := request(user("u", "Hi"))
	small.MaxTokens, small.RequireInvocation = 4096, true
	if _, _, err := run(t.Context(), model, small); err != nil {
		t.Errorf("a lower limit: %v", err)
	}
	if budget := gjson.GetBytes(server.Requests()[1].Body, "thinking.budget_tokens").Int(); budget != 2048 {
		t.Errorf("the budget is %d", budget)
	}
	if err := model.Screen(&invoker.Definition{
		Name: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{"$top":{}}}`),
	}); err == nil || !strings.Contains(err.Error(), "$top") {
		t.Errorf("the argument $top: %v", err)
	}
	if _, err := anthropicmodel.New("m", &anthropicmodel.Options{Thinking: "adaptive", ToolChoice: "any"}); err == nil ||
		!strings.Contains(err.Error(), "forces a call") {
		t.Errorf("a forced call with thinking: %v", err)
	}
}

// TestSampling: a request of an MCP server has what the API does not take: white space to
// stop at, a temperature while the model thinks or beside top_p, and an answer at its end.
func TestSampling(t *testing.T) {
	half, most := 0.5, 0.97
	for _, options := range []anthropicmodel.Options{{Thinking: "adaptive"}, {Thinking: "2048"}, {TopP: &most}} {
		server, model := once(t, options, openaiserver.Message{Text: "Fine."})
		sampling := request(user("u", "Hi"), canister.Assistant{Head: canister.Head{ID: "a"}, Content: canister.Texts("Well, ")})
		sampling.Temperature, sampling.Stop = &half, []string{"\n", "END"}
		if _, _, err := run(t.Context(), model, sampling); err != nil {
			t.Errorf("%+v: %v", options, err)
			continue
		}
		sent := gjson.ParseBytes(server.Requests()[0].Body)
		if got := sent.Get("stop_sequences").Raw; got != `["END"]` {
			t.Errorf("stop_sequences is %s", got)
		}
		if got := sent.Get("temperature").Exists(); got != (options.Thinking == "") {
			t.Errorf("with thinking %q there is a temperature: %t", options.Thinking, got)
		}
		if got := sent.Get("messages.2.content.0.text").Str; got != "[continue]" {
			t.Errorf("the last message is %q", got)
		}
	}
	for says, options := range map[string]anthropicmodel.Options{
		"white space": {Stop: []string{"END", " \n"}}, "only 1 for": {Thinking: "adaptive", Temperature: &half}, "only 0.95": {Thinking: "2048", TopP: &half},
		"set MaxTokens": {ExtraBody: map[string]any{"max_tokens": 100}},
	} {
		if _, err := anthropicmodel.New("m", &options); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", options, err, says)
		}
	}
}

// TestPurposes: a summary, and the answer to a tool, have no tools of the server, and no MCP
// servers, which the API then refuses.
func TestPurposes(t *testing.T) {
	for purpose, want := range map[converse.Purpose]bool{converse.PurposeAnswer: true, converse.PurposeSummary: false, converse.PurposeSampling: false} {
		server, model := once(t, anthropicmodel.Options{
			HostedTools: []map[string]any{{"type": "mcp_toolset", "mcp_server_name": "x"}},
			ExtraBody:   map[string]any{"mcp_servers": []any{map[string]any{"type": "url", "url": "https://x/mcp", "name": "x"}}},
		}, openaiserver.Message{Text: "Fine."})
		asked := request(user("u", "Hi"))
		asked.Purpose = purpose
		if _, _, err := run(t.Context(), model, asked); err != nil {
			t.Errorf("%s: %v", purpose, err)
			continue
		}
		if sent := gjson.ParseBytes(server.Requests()[0].Body); sent.Get("tools").Exists() != want || sent.Get("mcp_servers").Exists() != want {
			t.Errorf("%s: the request is %s", purpose, sent)
		}
	}
}

// TestThinkingLeavesRoom: a request with a lower limit thinks with at most half of it, or, if
// that is too little for the API, not at all.
func TestThinkingLeavesRoom(t *testing.T) {
	for limit, budget := range map[int64]int64{0: 8000, 8100: 4050, 8000: 4000, 2048: 1024, 2047: 0, 20000: 8000} {
		server, model := once(t, anthropicmodel.Options{Thinking: "8000", MaxTokens: 10000}, openaiserver.Message{Text: "Fine."})
		asked := request(user("u", "Hi"))
		asked.MaxTokens = limit
		if _, _, err := run(t.Context(), model, asked); err != nil {
			t.Errorf("%d: %v", limit, err)
			continue
		}
		if got := gjson.GetBytes(server.Requests()[0].Body, "thinking.budget_tokens").Int(); got != budget {
			t.Errorf("with a limit of %d, the budget is %d, not %d", limit, got, budget)
		}
	}
}

// TestThinkingAfterCallsWithoutIt: thinking with a budget does not start after calls that
// were made without it, also if another message has followed.
func TestThinkingAfterCallsWithoutIt(t *testing.T) {
	server, model := once(t, anthropicmodel.Options{Thinking: "2048"}, openaiserver.Message{Text: "Fine."})
	if _, _, err := run(t.Context(), model, request(
		user("u", "Hi"), canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "call_0", Name: "f", Arguments: `{}`},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: canister.Texts("Done.")}, user("v", "And?"),
	)); err != nil {
		t.Fatal(err)
	}
	if body := server.Requests()[0].Body; gjson.GetBytes(body, "thinking").Exists() {
		t.Errorf("%s", body)
	}
}

// TestRejectedThinking: after the server has rejected thinking of its own, the conversation
// goes on without it.
func TestRejectedThinking(t *testing.T) {
	refused := openaiserver.Failure{Status: 400, Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}
	server, model := once(t, anthropicmodel.Options{}, openaiserver.Message{Reasoning: "Hm.", Text: "Hello."}, refused, openaiserver.Message{Text: "Again."})
	talk := model.Bind()
	_, reply, err := run(t.Context(), talk, request(user("u", "Hi")))
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := run(t.Context(), talk, request(user("u", "Hi"), reply.Message, user("v", "And?"))); err != nil || text != "Again." {
		t.Errorf("%q, %v", text, err)
	}
	for i, carries := range []bool{false, true, false} {
		if body := server.Requests()[i].Body; strings.Contains(string(body), "signature") != carries {
			t.Errorf("request %d: %s", i, body)
		}
	}
}

// A call in an answer that was refused does not run, and the conversation goes on without it.
func TestCallsOfARefusedAnswer(t *testing.T) {
	refused := openaiserver.Recording([]byte(`{"type":"message","role":"assistant","model":"m","stop_reason":"refusal","content":[` +
		`{"type":"tool_use","id":"toolu_1","name":"pay","input":{"to":"me"}},{"type":"text","text":"Hel"}]}`))
	server, model := once(t, anthropicmodel.Options{NoStream: true}, refused)
	_, reply, err := run(t.Context(), model, request(user("u", "Pay me.")))
	if err != nil || len(reply.Invocations) > 0 || reply.Message.Finish != canister.FinishRefusal || len(reply.Message.Content) != 1 {
		t.Fatalf("%v, %+v", err, reply)
	}
	if _, _, err := run(t.Context(), model, request(user("u", "Pay me."), reply.Message, user("v", "Why not?"))); err != nil {
		t.Error(err)
	}
	if types := gjson.GetBytes(server.Requests()[1].Body, "messages.1.content.#.type").Raw; types != `["text"]` {
		t.Errorf("of the answer, %s is sent again", types)
	}
}
