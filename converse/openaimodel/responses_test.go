// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// randomAnswers are a script that never ends: answers with and without reasoning, text,
// and up to three calls at once, some of which fail.
func randomAnswers(r *rand.Rand) openaiserver.Respond {
	return func(request *openaiserver.Request) openaiserver.Reply {
		m := openaiserver.Message{Delta: 1 + r.IntN(40)}
		if r.IntN(2) == 0 {
			m.Reasoning = "Let me think. é"
		}
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

// TestResponsesAreNeverRefused: whatever the answers and calls are, a strict server takes
// each request, and each request begins with the bytes of the one before.
func TestResponsesAreNeverRefused(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			server := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: randomAnswers(r)}}}, nil)
			model := newModel(t, server.URL(), openaimodel.Options{API: "responses", NoStream: seed%2 == 0})
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
				input := gjson.GetBytes(request.Body, "input").Raw
				if open := strings.TrimSuffix(before, "]"); !strings.HasPrefix(input, open) {
					t.Fatalf("request %d does not begin with the one before:\n%s\n%s", i, open, input)
				}
				before = input
			}
			if reasoning := strings.Count(before, `"encrypted_content"`); reasoning < 5 {
				t.Errorf("%d items of reasoning are sent back", reasoning)
			}
		})
	}
}

// converseOnce returns the canisters of a turn whose first answer reasons and calls a tool.
func converseOnce(t *testing.T, server *openaiserver.Server, options openaimodel.Options) []canister.Canister {
	t.Helper()
	roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.ServerTools()...))
	if err != nil {
		t.Fatal(err)
	}
	talk := converse.New(newModel(t, server.URL(), options), roster, &converse.Options{OwnRoster: true})
	defer talk.Close(t.Context())
	for _, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return talk.History()
}

// thinking is a script of a turn with reasoning.
var thinking = openaiserver.Script{Steps: []openaiserver.Step{
	{Reply: openaiserver.Message{
		Reasoning: "Secret thoughts.", Text: "One moment.", Calls: []openaiserver.Call{{Name: "local__echo", Arguments: `{"text":"a"}`}},
	}},
	{Reply: openaiserver.Message{Reasoning: "More thoughts.", Text: "Done."}},
	{Reply: openaiserver.Message{Text: "Again."}},
}}

// TestReasoningStaysAtHome: encrypted reasoning goes only to the server and the model that
// it came from.
func TestReasoningStaysAtHome(t *testing.T) {
	server, other := start(t, thinking, nil), start(t, thinking, nil)
	history := append(converseOnce(t, server, openaimodel.Options{API: "responses"}),
		canister.User{Head: canister.Head{ID: "again"}, Content: canister.Texts("And again?")})
	for _, test := range []struct {
		name    string
		model   string
		server  *openaiserver.Server
		api     string
		carries bool
	}{
		{"the same", "m-1", server, "responses", true},
		{"another model", "m-2", server, "responses", false},
		{"another server", "m-1", other, "responses", false},
		{"another API", "m-1", server, "chat", false},
	} {
		model, err := openaimodel.New(test.model, &openaimodel.Options{BaseURL: test.server.URL(), API: test.api})
		if err != nil {
			t.Fatal(err)
		}
		if out := modeltest.Run(t.Context(), model, newRequest(history...)); out.Err != nil {
			t.Errorf("%s: %v", test.name, out.Err)
		}
		requests := test.server.Requests()
		body := requests[len(requests)-1].Body
		sent := gjson.GetBytes(body, "input").Raw + gjson.GetBytes(body, "messages").Raw
		for _, secret := range []string{"encrypted_content", "rs_", "thoughts"} {
			if carries := strings.Contains(sent, secret); carries != test.carries {
				t.Errorf("%s: %q is there: %t, want %t:\n%s", test.name, secret, carries, test.carries, sent)
			}
		}
	}
}

// TestOlderModelsHaveNoEncryptedReasoning: the model asks for it once, and then no more.
func TestOlderModelsHaveNoEncryptedReasoning(t *testing.T) {
	respond := openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		if bytes.Contains(r.Body, []byte(`"include"`)) {
			return openaiserver.Failure{Status: http.StatusBadRequest, Message: "Encrypted content is not supported with this model.", Param: "include"}
		}
		return openaiserver.Message{Text: "Hello."}
	})
	server := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: respond}}}, nil)
	model := newModel(t, server.URL(), openaimodel.Options{API: "responses"})
	for range 2 {
		if out := modeltest.Run(t.Context(), model, newRequest()); out.Err != nil || out.Text != "Hello." {
			t.Fatal(out.Err)
		}
	}
	if n := len(server.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// TestBrokenResponses: a failure in the middle of a stream is an error with the words of
// the server, and a stream that ends too early is retryable.
func TestBrokenResponses(t *testing.T) {
	begin := `data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"Half"}` + "\n\n"
	for name, test := range map[string]struct {
		body, says, code string
		retryable        bool
	}{
		"failed": {begin +
			`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"The model had a bad day."}}}` +
			"\n\n",
			"The model had a bad day.", "server_error", true},
		"error event": {
			begin + "event: error\n" + `data: {"type":"error","code":"rate_limit_exceeded","message":"Slow down.","param":null}` + "\n\n", "Slow down.",
			"rate_limit_exceeded", true,
		},
		"bad prompt": {
			`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"No."}}}` + "\n\n", "No.",
			"invalid_prompt", false,
		},
		"policy": {
			`data: {"type":"response.failed","response":{"status":"failed","error":{"code":"bio_policy","message":"Not this."}}}` + "\n\n", "Not this.",
			"bio_policy", false,
		},
		"bad request": {
			`data: {"error":{"type":"invalid_request_error","code":"unknown_member","message":"What?"}}` + "\n\n", "What?",
			"unknown_member", false,
		},
		"a tool ran": {
			`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"mcp_call","id":"c","name":"open_ticket","server_label":"desk"}}` + "\n\n",
			`the server has run the tool "open_ticket"`, "", false,
		},
		"cut":          {begin, "ended before", "", true},
		"done at once": {begin + "data: [DONE]\n\n", "ended before", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Recording([]byte(test.body))}}}, nil)
			out := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{API: "responses", MaxRetries: -1}), newRequest())
			failed, _ := out.Err.(*converse.ModelError)
			if failed == nil || !strings.Contains(failed.Message, test.says) || failed.Code != test.code || failed.Retryable != test.retryable {
				t.Errorf("%#v", out.Err)
			}
		})
	}
}

// TestPartsOfResponsesThatAreMissing: servers that claim to be compatible leave out some
// events and members.
func TestPartsOfResponsesThatAreMissing(t *testing.T) {
	event := func(text string) string { return "data: " + text + "\n\n" }
	for name, body := range map[string]string{
		"items only at their end": event(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant",`+
			`"content":[{"type":"output_text","text":"Hi"}]}}`) +
			event(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`) +
			event(`{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		"items only in the response": event(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message",` +
			`"content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`),
		"no indexes": event(`{"type":"response.output_item.added","item":{"type":"message","id":"m"}}`) +
			event(`{"type":"response.output_text.delta","item_id":"m","delta":"Hi"}`) +
			event(`{"type":"response.output_item.added","item":{"type":"function_call","id":"x","call_id":"c","name":"f"}}`) +
			event(`{"type":"response.function_call_arguments.delta","item_id":"x","delta":"{}"}`) +
			event(`{"type":"response.completed","response":{"status":"completed"}}`),
		"names of events alone": "event: response.output_text.delta\n" + event(`{"output_index":0,"delta":"Hi"}`) +
			"event: response.output_item.done\n" + event(`{"output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":{}}}`) +
			"event: response.completed\n" + event(`{"response":{"status":"completed"}}`),
		"two items of one position": event(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}`) +
			event(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"Hi"}`) +
			event(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":"{}"}}`) +
			event(`{"type":"response.completed","response":{"status":"completed","output":[`+
				`{"type":"message","id":"m","content":[{"type":"output_text","text":"Hi"}]},`+
				`{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":"{}"}]}}`),
		"a response without its reasoning, in another order": event(`{"type":"response.output_item.done","output_index":0,`+
			`"item":{"type":"reasoning","id":"r","summary":[]}}`) +
			event(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":"{}"}}`) +
			event(`{"type":"response.output_item.added","output_index":2,"item":{"type":"message"}}`) +
			event(`{"type":"response.output_text.delta","output_index":2,"delta":"Hi"}`) +
			event(`{"type":"response.completed","response":{"status":"completed","output":[`+
				`{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`),
		"whole": `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Recording([]byte(body))}}}, nil)
			out := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{API: "responses", MaxRetries: -1}), newRequest())
			if out.Err != nil || out.Text != "Hi" || canister.TextOf(out.Reply.Message.Content) != "Hi" || len(out.Reply.Invocations) != 1 {
				t.Fatalf("%v, %q, %+v", out.Err, out.Text, out.Reply)
			}
			if call := out.Reply.Invocations[0]; call.CallID != "c" || call.Name != "f" || call.Arguments != "{}" || len(out.Began) != 1 {
				t.Errorf("%+v, announced %v", call, out.Began)
			}
		})
	}
}

// TestHostedTools: what a tool of the server did is content of the answer, without its
// identity there, and goes back as it was.
func TestHostedTools(t *testing.T) {
	search := `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"weather in Oslo"}}`
	shown := `{"action":{"query":"weather in Oslo","type":"search"},"status":"completed","type":"web_search_call"}`
	body := `{"object":"response","status":"completed","output":[` + search +
		`,{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Rain."}]}]}`
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Recording([]byte(body))}, {Reply: openaiserver.Message{Text: "Yes."}},
	}}, nil)
	model := newModel(t, server.URL(), openaimodel.Options{API: "responses", HostedTools: []map[string]any{{"type": "web_search"}}})
	request := newRequest()
	out := modeltest.Run(t.Context(), model, request)
	if out.Err != nil || len(out.Reply.Message.Content) != 2 {
		t.Fatalf("%v, %+v", out.Err, out.Reply)
	}
	if did, ok := out.Reply.Message.Content[0].(canister.StructuredContent); !ok || string(did.JSON) != shown {
		t.Errorf("%+v", out.Reply.Message.Content[0])
	}
	again := modeltest.Run(t.Context(), model, newRequest(append(request.History, out.Reply.Message,
		canister.User{Head: canister.Head{ID: "u2"}, Content: canister.Texts("Sure?")})...))
	sent := server.Requests()[1].Body
	if again.Err != nil || gjson.GetBytes(sent, "input.1").Raw != search || gjson.GetBytes(sent, "input.2.content.0.text").Str != "Rain." {
		t.Errorf("%v: %s", again.Err, sent)
	}
	if gjson.GetBytes(sent, "tools.0.type").Str != "web_search" {
		t.Errorf("%s", sent)
	}
}

// TestResultsWithImagesAndFiles: they are part of the output of the call.
func TestResultsWithImagesAndFiles(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{}, {Reply: openaiserver.Message{Text: "Seen."}}}}, nil)
	out := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{API: "responses"}), newRequest(
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Look.")},
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "f", Arguments: "{}"},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: []canister.Content{
			canister.Text("Here:"), canister.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIME: "image/png"},
			canister.ResourceContent{URI: "file:///a/report.pdf", MIME: "application/pdf", Blob: []byte("%PDF-1.7")},
			canister.ResourceContent{URI: "file:///a/x.bin", MIME: "application/zip", Blob: []byte("PK")},
		}},
	))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	output := gjson.GetBytes(server.Requests()[0].Body, "input.2.output")
	for path, want := range map[string]string{
		"0.text": "Here:", "1.image_url": "data:image/png;base64,iVBORw0KGgo=", "3.filename": "report.pdf",
		"3.file_data": "data:application/pdf;base64,JVBERi0xLjc=",
		"4.text":      "[resource file:///a/x.bin: application/zip, 2 bytes, omitted: the model's API cannot carry it]",
	} {
		if got := output.Get(path).Str; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// TestStrictTools: a schema that can be enforced is, and no other.
func TestStrictTools(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Fine."}}}}, nil)
	request := newRequest()
	request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{
		{
			Name: "closed",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"array",` +
				`"items":{"type":"integer"}}},"required":["a","b"],"additionalProperties":false}`),
		},
		{Name: "open", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		{Name: "long", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","enum":[` + strings.Repeat("1,", 1000) +
			`1]}},"required":["a"],"additionalProperties":false}`)},
		{Name: "optional", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)},
	}}
	if out := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{API: "responses"}), request); out.Err != nil {
		t.Fatal(out.Err)
	}
	for i, tool := range gjson.GetBytes(server.Requests()[0].Body, "tools").Array() {
		if strict := tool.Get("strict").Bool(); strict != (i == 0) {
			t.Errorf("%s is strict: %t", tool.Get("name"), strict)
		}
	}
}

// TestAPIOfTheServer: OpenAI and Azure get Responses, others Chat Completions, and options
// that an API does not have are errors.
func TestAPIOfTheServer(t *testing.T) {
	for base, want := range map[string]string{
		"":                                     "/v1/responses",
		"https://x.openai.azure.com/openai/v1": "/openai/v1/responses",
		"https://x.openai.azure.com/openai/deployments/d?api-version=1": "/openai/deployments/d/chat/completions",
		"https://example.com/v1": "/v1/chat/completions",
	} {
		var path string
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			path = r.URL.Path
			return nil, fmt.Errorf("enough")
		})}
		modeltest.Run(t.Context(), newModel(t, base, openaimodel.Options{HTTPClient: client, MaxRetries: -1}), newRequest())
		if path != want {
			t.Errorf("%q: %s, want %s", base, path, want)
		}
	}
	seed := int64(1)
	for says, options := range map[string]openaimodel.Options{
		"Stop is set":             {Stop: []string{"x"}},
		"Seed is set":             {Seed: &seed},
		"HostedTools is set":      {API: "chat", HostedTools: []map[string]any{{"type": "web_search"}}},
		"ReasoningSummary is set": {API: "chat", ReasoningSummary: "auto"},
		`API is "odd"`:            {API: "odd"},
		"HostedTools[0]":          {HostedTools: []map[string]any{{"type": "function"}}},
	} {
		if _, err := openaimodel.New("m", &options); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", options, err, says)
		}
	}
}

// TestRejectedReasoning: after the server has rejected reasoning of its own, for example
// because the key belongs to another organization, the conversation goes on without it.
func TestRejectedReasoning(t *testing.T) {
	const says = "The encrypted content could not be verified."
	for name, refusal := range map[string]openaiserver.Reply{
		"status": openaiserver.Failure{Status: 400, Code: "invalid_encrypted_content", Message: says},
		"in the stream": openaiserver.Recording([]byte(`data: {"type":"response.failed","response":{"status":"failed",` +
			`"error":{"code":"invalid_encrypted_content","message":"` + says + `"}}}` + "\n\n")),
	} {
		t.Run(name, func(t *testing.T) { goesOnWithoutReasoning(t, refusal) })
	}
}

func goesOnWithoutReasoning(t *testing.T, refusal openaiserver.Reply) {
	n := 0
	respond := openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		if n++; n == 2 {
			return refusal
		}
		return openaiserver.Message{Text: "Hello."}
	})
	server := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: respond}}}, nil)
	talk := newModel(t, server.URL(), openaimodel.Options{API: "responses"}).Bind()
	request := newRequest()
	out := modeltest.Run(t.Context(), talk, request)
	again := newRequest(append(request.History, out.Reply.Message, canister.User{Head: canister.Head{ID: "v"}, Content: canister.Texts("And?")})...)
	if out := modeltest.Run(t.Context(), talk, again); out.Err != nil || out.Text != "Hello." {
		t.Fatalf("%v, %q", out.Err, out.Text)
	}
	for i, carries := range []bool{false, true, false} {
		if input := gjson.GetBytes(server.Requests()[i].Body, "input").Raw; strings.Contains(input, "encrypted_content") != carries {
			t.Errorf("request %d: %s", i, input)
		}
	}
}

// TestPatternsWithLookaround would make OpenAI refuse all tools.
func TestPatternsWithLookaround(t *testing.T) {
	var body []byte
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return nil, fmt.Errorf("enough")
	})}
	request := newRequest()
	request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{{
		Name:        "f",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)y"},"b":{"type":"string","pattern":"^z"}}}`),
	}}}
	modeltest.Run(t.Context(), newModel(t, "", openaimodel.Options{HTTPClient: client, MaxRetries: -1}), request)
	if text := gjson.GetBytes(body, "tools.0.parameters").Raw; strings.Contains(text, "?!") || !strings.Contains(text, "^z") {
		t.Errorf("%s", text)
	}
}
