// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/tidwall/gjson"
)

// alternating returns what the template of a model of Mistral says about messages; "" if it takes them.
func alternating(body []byte) string {
	user := true
	for i, m := range gjson.GetBytes(body, "messages").Array() {
		switch role := m.Get("role").Str; {
		case role == "system" && i > 0:
			return "System message must be at the beginning."
		case role == "system", role == "tool", m.Get("tool_calls").Exists():
		case (role == "user") != user:
			return "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
		default:
			user = !user
		}
	}
	return ""
}

// TestRolesMustAlternate: after a server has refused messages because of the order of their roles,
// messages of the user in a row are one. Later conversations with the model begin so.
func TestRolesMustAlternate(t *testing.T) {
	for _, status := range []int{400, 500} { // vllm-project/vllm#6862, ggml-org/llama.cpp#19851
		var bodies []string
		refusals, down := 0, false
		server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			last := gjson.GetBytes(body, "messages.@reverse.0")
			if said := alternating(body); said != "" {
				refusals++
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"object":"error","message":%q,"type":"BadRequestError","param":null,"code":%d}`, said, status)
			} else if down {
				w.WriteHeader(http.StatusUnauthorized)
			} else if strings.HasSuffix(last.Get("content").String(), "Look.") {
				fmt.Fprint(w, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"local__look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
			} else {
				fmt.Fprint(w, `{"choices":[{"message":{"content":"Fine."},"finish_reason":"stop"}]}`)
			}
		})
		model := newModel(t, server.URL, openaimodel.Options{MaxRetries: -1, NoStream: true})
		talk := converse.New(model, looking(t, canister.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIME: "image/png"}), nil)
		add := func(canisters ...canister.Canister) {
			if err := talk.Add(t.Context(), canisters...); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(text string) {
			if turn, err := talk.Ask(t.Context(), canister.Text(text)); err != nil || turn.Text() != "Fine." {
				t.Fatalf("%d: %v, %q", status, err, turn.Text())
			}
		}
		add(canister.Supervisor{Content: canister.Texts("Be brief.")}, canister.Supervisor{Content: canister.Texts("Be kind.")})
		add(canister.Document{Title: "a", Content: canister.Texts("b")})
		ask("Look.")
		add(canister.Supervisor{Content: canister.Texts("Be quick.")})
		down = true
		if _, err := talk.Ask(t.Context(), canister.Text("Are you there?")); err == nil {
			t.Fatal("the turn succeeded")
		}
		down = false
		ask("And now?")
		var got []string
		for _, m := range gjson.Get(bodies[len(bodies)-1], "messages").Array() {
			got = append(got, m.Get("role").Str+": "+m.Get("content").String())
		}
		want := []string{
			"system: Be brief.\nBe kind.", "user: <document title=\"a\">\nb\n</document>\nLook.", "assistant: ", "", "assistant: [no answer]", "",
			"assistant: Fine.", "user: <system>\nBe quick.\n</system>\nAre you there?\nAnd now?",
		}
		if len(got) == len(want) {
			want[3], want[5] = got[3], got[5] // the result and its image
		}
		if refusals != 1 || !slices.Equal(got, want) {
			t.Errorf("%d: %d refusals\ngot  %q\nwant %q", status, refusals, got, want)
		}
		if other := modeltest.Run(t.Context(), model, newRequest(canister.User{Head: head("1"), Content: canister.Texts("A")}, canister.User{Head: head("2"), Content: canister.Texts("B")})); other.Err != nil || refusals != 1 {
			t.Errorf("%d: %v after %d refusals", status, other.Err, refusals)
		}
	}
}

// TestRolesThatCannotAlternate: a server that refuses the messages again is not asked a third time.
func TestRolesThatCannotAlternate(t *testing.T) {
	for _, said := range []string{
		"After the (optional) system message(s), user and assistant roles should be alternating.",                         // perplexityai/api-discussion#265
		"m does not support successive user or assistant messages (messages[1] and messages[2] in your input).",           // deepseek-ai/DeepSeek-R1#21
		"Conversation roles must alternate user/assistant/user/assistant/...", "System message must be at the beginning.", // ggml-org/llama.cpp#27367
	} {
		text, _ := json.Marshal(map[string]any{"error": map[string]any{"message": said}})
		_, bodies, err := talkWith(t, openaimodel.Options{MaxRetries: -1}, 1, func(int, string) (int, string) { return 400, string(text) })
		var failed *converse.ModelError
		if !errors.As(err, &failed) || len(bodies) != 2 {
			t.Errorf("%d requests, want 2: %v", len(bodies), err)
		}
	}
}
