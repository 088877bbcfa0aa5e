// SPDX-License-Identifier: Apache-2.0

package modelapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
)

// TestCitations: the sources that an answer cites are metadata of its text, without members
// that only the server can read, from a whole answer and from a stream.
func TestCitations(t *testing.T) {
	const (
		openAI = `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text",` +
			`"text":"It snows.","annotations":[{"type":"url_citation","start_index":0,"end_index":9,"url":"https://weather.example","title":"Weather"}]}]}`
		citation = `{"type":"web_search_result_location","url":"https://weather.example","title":"Weather","encrypted_index":"4711","cited_text":"snow"}`
	)
	stream := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	anthropic := func(body string) converse.Model {
		model, err := anthropicmodel.New("m", &anthropicmodel.Options{HTTPClient: &http.Client{Transport: answering{200, body}}})
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
	responses := func(body string) converse.Model {
		model, err := openaimodel.New("m", &openaimodel.Options{HTTPClient: &http.Client{Transport: answering{200, body}}})
		if err != nil {
			t.Fatal(err)
		}
		return model
	}
	const ofOpenAI = `[{"end_index":9,"start_index":0,"title":"Weather","type":"url_citation","url":"https://weather.example"}]`
	const ofAnthropic = `[{"cited_text":"snow","title":"Weather","type":"web_search_result_location","url":"https://weather.example"}]`
	for name, test := range map[string]struct {
		model converse.Model
		want  string
	}{
		"Responses": {responses(`{"object":"response","status":"completed","output":[` + openAI + `]}`), ofOpenAI},
		"Responses, streamed": {responses(stream(
			`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_1","delta":"It "}`,
			`{"type":"response.output_item.done","output_index":0,"item":`+openAI+`}`,
			`{"type":"response.completed","response":{"status":"completed","output":[`+openAI+`]}}`)), ofOpenAI},
		"Messages": {
			anthropic(`{"type":"message","role":"assistant","content":[{"type":"text","text":"It snows.","citations":[` + citation +
				`]}],"stop_reason":"end_turn"}`),
			ofAnthropic,
		},
		"Messages, streamed": {anthropic(stream(
			`{"type":"message_start","message":{"role":"assistant","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It snows."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":`+citation+`}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)), ofAnthropic},
	} {
		talk := converse.New(test.model, nil, nil)
		for _, err := range talk.Send(t.Context(), canister.Text("How is the weather?")) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		said := talk.History()[1].(canister.Assistant)
		if got := string(canister.PayloadOf(said.Content[0]).Metadata["io.github.consort-go/citations"]); got != test.want ||
			canister.TextOf(said.Content) != "It snows." {
			t.Errorf("%s: %q cites %s, want %s", name, canister.TextOf(said.Content), got, test.want)
		}
	}
}
