// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/openaimodel"
)

// The settings of a request are sent under the names that the options choose:
// the lesser bound, and the rest in place of the options' own. ExtraBody wins.
func TestRequestSettings(t *testing.T) {
	all := converse.Request{MaxTokens: 50, Temperature: new(0.0), Stop: []string{"A", "B"}}
	own := openaimodel.Options{MaxTokens: 9, Temperature: new(1.5), Stop: []string{"<"}}
	loose := own
	loose.MaxTokens = 90
	for _, test := range []struct {
		name    string
		options openaimodel.Options
		request converse.Request
		want    string
	}{
		{"none", openaimodel.Options{}, converse.Request{}, `{}`},
		{"all", openaimodel.Options{}, all, `{"max_tokens":50,"stop":["A","B"],"temperature":0}`},
		{"newer field", openaimodel.Options{MaxTokensField: "max_completion_tokens"}, all, `{"max_completion_tokens":50,"stop":["A","B"],"temperature":0}`},
		{"lesser of the model", own, all, `{"max_tokens":9,"stop":["A","B"],"temperature":0}`},
		{"lesser of the request", loose, all, `{"max_tokens":50,"stop":["A","B"],"temperature":0}`},
		{"of the model", own, converse.Request{}, `{"max_tokens":9,"stop":["\u003c"],"temperature":1.5}`},
		{"some", own, converse.Request{MaxTokens: 5}, `{"max_tokens":5,"stop":["\u003c"],"temperature":1.5}`},
		{
			"extra", openaimodel.Options{ExtraBody: map[string]any{"max_completion_tokens": 7, "temperature": 1}}, all,
			`{"max_completion_tokens":7,"stop":["A","B"],"temperature":1}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t, []conversetest.Line{{Text: "blue"}}, test.options)
			request := test.request
			request.History = []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go")}}
			request.NewID = func() string { return "id" }
			for _, err := range h.Model.Exchange(t.Context(), &request) {
				if err != nil {
					t.Fatal(err)
				}
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(h.Received()), &body); err != nil {
				t.Fatal(err)
			}
			for _, other := range []string{"messages", "model", "stream", "stream_options"} {
				delete(body, other)
			}
			if got, _ := json.Marshal(body); string(got) != test.want {
				t.Errorf("the request has %s, want %s", got, test.want)
			}
		})
	}
}

// A temperature that is no number fails the exchange before anything is sent.
func TestRequestSettingsNotANumber(t *testing.T) {
	model, err := openaimodel.New("test", &openaimodel.Options{BaseURL: "http://127.0.0.1:1/v1", MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	request := &converse.Request{Temperature: new(math.NaN()), NewID: func() string { return "id" }}
	for _, err := range model.Exchange(t.Context(), request) {
		if err == nil || !strings.Contains(err.Error(), `the field "temperature"`) {
			t.Errorf("the error is %v", err)
		}
	}
}
