// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/invoker"
)

// talkWith has one exchange after the other with a server that answers in this way.
// It returns the answers, the bodies of the requests, and the last error.
func talkWith(t *testing.T, options openaimodel.Options, exchanges int, answer func(n int, body string) (int, string)) (texts, bodies []string, last error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		status, text := answer(len(bodies), string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	options.BaseURL = server.URL
	model, err := openaimodel.New("test", &options)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	talk := converse.New(model, nil, nil)
	for range exchanges {
		turn, err := talk.Ask(t.Context(), canister.Text("Go."))
		texts, last = append(texts, turn.Text()), err
	}
	return texts, bodies, last
}

func stream(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"
}

// A server that repeats all so far beside each piece says it once.
func TestWholeMessageBesideEachDelta(t *testing.T) {
	texts, _, err := talkWith(t, openaimodel.Options{}, 1, func(int, string) (int, string) {
		return 200, stream(
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"Hel"},"delta":{"role":"assistant","content":"Hel"}}]}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello you"},"delta":{"content":"lo you"}}]}`,
			`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello you"},"delta":{"content":""}}]}`)
	})
	if err != nil || texts[0] != "Hello you" {
		t.Errorf("the answer is %q, %v", texts, err)
	}
}

// A server that refuses stream_options is asked again without, and from then on.
func TestStreamOptionsRefused(t *testing.T) {
	for _, refusal := range []struct {
		status int
		text   string
	}{
		{400, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`},
		{422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`},
	} {
		answer := func(_ int, body string) (int, string) {
			if strings.Contains(body, "stream_options") {
				return refusal.status, refusal.text
			}
			return 200, stream(`{"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}`)
		}
		texts, bodies, err := talkWith(t, openaimodel.Options{MaxRetries: -1}, 2, answer)
		if err != nil || !slices.Equal(texts, []string{"Yes.", "Yes."}) || len(bodies) != 3 {
			t.Errorf("%d: the answers are %q after %d requests, %v", refusal.status, texts, len(bodies), err)
		}
		own := openaimodel.Options{ExtraBody: map[string]any{"stream_options": map[string]any{"include_usage": true}}}
		if _, _, err := talkWith(t, own, 1, answer); err == nil || !strings.Contains(err.Error(), `remove openaimodel.Options.ExtraBody["stream_options"]`) {
			t.Errorf("%d: the error is %v", refusal.status, err)
		}
	}
}

// The pieces of reasoning_details are put together and sent back to their server.
func TestReasoningDetailsAreSentBack(t *testing.T) {
	_, bodies, err := talkWith(t, openaimodel.Options{}, 2, func(int, string) (int, string) {
		return 200, stream(
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"So ","format":"x","index":0}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"then.","index":0},{"type":"reasoning.encrypted",`+
				`"data":"AA==","id":"r1","index":0}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0}]}}]}`,
			`{"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}`)
	})
	const want = `"reasoning_details":[{"format":"x","index":0,"signature":"sig","text":"So then.","type":"reasoning.text"},{"data":"AA==",` +
		`"id":"r1","index":0,"type":"reasoning.encrypted"}]`
	if err != nil || !strings.Contains(bodies[1], want) {
		t.Errorf("%v: the second request is %s", err, bodies[1])
	}
}

// A server in front of several providers gets the details of one model only with that
// model.
func TestReasoningDetailsStayWithTheirModel(t *testing.T) {
	for model, want := range map[string]bool{"m-1": true, "other": false} {
		url, body := catch(t)
		kept := fmt.Sprintf(`{"host":%q,"model":%q,"value":[{"data":"AA=="}]}`, strings.TrimPrefix(strings.TrimSuffix(url, "/v1"), "http://"), model)
		said := canister.Assistant{Head: head("a"), Content: canister.Texts("Yes.")}
		said.Metadata = canister.Fields{"openaimodel.reasoning_details": json.RawMessage(kept)}
		history := []canister.Canister{
			canister.User{Head: head("u"), Content: canister.Texts("Well?")}, said, canister.User{Head: head("v"), Content: canister.Texts("So?")},
		}
		if got := modeltest.Run(t.Context(), newModel(t, url, openaimodel.Options{}), newRequest(history...)); got.Err != nil {
			t.Fatal(got.Err)
		}
		if got := strings.Contains(string(*body), "AA=="); got != want {
			t.Errorf("the details of %s are sent: %t; %s", model, got, *body)
		}
	}
}

// The namespace of a prompt format before the name of a tool is left off, if the rest is
// a tool on offer and the whole is not.
func TestNamespaceBeforeAToolName(t *testing.T) {
	for _, test := range []struct {
		said, want string
		offered    []string
	}{
		{"functions.atlas__weather", "atlas__weather", []string{"atlas__weather"}},
		{"functions.atlas__weather", "functions.atlas__weather", []string{"atlas__weather", "functions.atlas__weather"}},
		{"functions.atlas__wether", "functions.atlas__wether", []string{"atlas__weather"}},
		{"atlas__weather", "atlas__weather", []string{"atlas__weather"}},
		{"functions.f", "functions.f", nil},
	} {
		answers := []string{
			stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"` + test.said +
				`","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`),
			stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"functions"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"`+strings.TrimPrefix(test.said,
					"functions")+`","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`),
			`{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"` + test.said + `","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		}
		for i, answer := range answers {
			if i == 1 && !strings.HasPrefix(test.said, "functions.") {
				continue
			}
			shown, name := callOf(t, answer, test.offered)
			if name != test.want || i != 1 && shown != test.want {
				t.Errorf("%q with %q on offer, answer %d: shown as %q, called %q, want %q", test.said, test.offered, i, shown, name, test.want)
			}
		}
	}
}

// callOf has an exchange with a server that gives an answer, and returns the names of its
// call: the one that is shown while the answer streams in, and the one in the reply.
func callOf(t *testing.T, answer string, offered []string) (shown, name string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	model, err := openaimodel.New("test", &openaimodel.Options{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	request := &converse.Request{NewID: func() string { return "id" }, History: []canister.Canister{canister.User{Content: canister.Texts("Go.")}}}
	if offered != nil {
		request.Tools = &converse.Toolset{}
	}
	for _, tool := range offered {
		request.Tools.Definitions = append(request.Tools.Definitions, &invoker.Definition{Name: tool, InputSchema: []byte(`{"type":"object"}`)})
	}
	for event, err := range model.Exchange(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.Delta:
			shown += event.Invocation
		case converse.Reply:
			name = event.Invocations[0].Name
		}
	}
	return shown, name
}
