// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// elsewhere sends all requests to one server, whatever their host.
type elsewhere struct{ to *url.URL }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = e.to.Scheme, e.to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// idle is a tool that is never called.
type idle struct{ definition *invoker.Definition }

func (i idle) Definition() *invoker.Definition { return i.definition }
func (i idle) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, nil
}

// wordy are tools with long descriptions.
func wordy(n int, description string) []invoker.Invoker {
	var tools []invoker.Invoker
	for i := range n {
		tools = append(tools, idle{&invoker.Definition{
			Name: fmt.Sprintf("t%03d", i), Description: description, InputSchema: json.RawMessage(`{"type":"object"}`),
		}})
	}
	return tools
}

// OpenAI gets as many tools as it takes, with descriptions as long as it takes. The
// rest is set aside, or cut where it can be seen, and the turn goes well.
func TestLimitsOfOpenAI(t *testing.T) {
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Done."}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to, _ := url.Parse(server.URL())
	model, err := openaimodel.New("gpt-5-mini", &openaimodel.Options{APIKey: "key-of-the-test", HTTPClient: &http.Client{Transport: elsewhere{to}}})
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("many", wordy(150, strings.Repeat("words é𝄞 ", 300))...), ensemble.Local("few", wordy(2, "short")...))
	if err != nil {
		t.Fatal(err)
	}
	talk := converse.New(model, roster, &converse.Options{OwnRoster: true})
	defer talk.Close(t.Context())
	var started converse.TurnStarted
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		if event, ok := event.(converse.TurnStarted); ok {
			started = event
		}
	}
	if started.Tools != 128 || len(started.Aside) != 24 || started.Aside[0].Reason != "the model's API accepts 128 tools per request" {
		t.Errorf("%d tools are offered, %d set aside: %v", started.Tools, len(started.Aside), started.Aside)
	}
	var body struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(server.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	for i, tool := range body.Tools {
		d := tool.Description
		if i < 2 {
			if !strings.HasPrefix(tool.Name, "few__") || d != "short" {
				t.Errorf("tool %d is %s: %q", i, tool.Name, d)
			}
			continue
		}
		if n := len(utf16.Encode([]rune(d))); n > 1024 || n < 1000 || !strings.HasSuffix(d, " characters left out]") {
			t.Errorf("the description of %s has %d characters: %q", tool.Name, n, d)
		}
	}
}

// Each server has its own limits, and the options have the last word.
func TestLimitsByServer(t *testing.T) {
	long := &invoker.Definition{Name: "1st", Description: strings.Repeat("x", 2000), InputSchema: json.RawMessage(`{"type":"object"}`)}
	for _, test := range []struct {
		url     string
		options openaimodel.Options
		tools   int
		cut     string // of the description: how many characters are left out
		refused string
	}{
		{url: "https://api.openai.com/v1", tools: 128, cut: "1008 are"},
		{url: "https://eu.api.openai.com/v1", tools: 128, cut: "1008 are"},
		{url: "https://mine.openai.azure.com/openai/v1", tools: 128, cut: "1008 are"},
		{url: "https://api.groq.com/openai/v1", tools: 128},
		{url: "https://api.deepseek.com", tools: 128},
		{url: "https://api.x.ai/v1", tools: 200},
		{url: "https://generativelanguage.googleapis.com/v1beta/openai", tools: 512, refused: "begin with a letter"},
		{url: "https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi", tools: 128, refused: "begin with a letter"},
		{url: "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/endpoints/openapi", tools: 128, refused: "begin with a letter"},
		{url: "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/endpoints/openapi", tools: 128, refused: "begin with a letter"},
		{url: "https://us-central1-aiplatform.googleapis.com.example/v1"},
		{url: "https://api.mistral.ai/v1"},
		{url: "https://api.anthropic.com/v1"},
		{url: "http://localhost:11434/v1"},
		{url: "http://localhost:11434/v1", options: openaimodel.Options{MaxTools: 30, MaxDescription: 100}, tools: 30, cut: "1932 are"},
		{url: "https://api.openai.com/v1", options: openaimodel.Options{MaxTools: -1, MaxDescription: -1}},
	} {
		test.options.BaseURL, test.options.APIKey = test.url, "key-of-the-test"
		model, err := openaimodel.New("m", &test.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := model.MaxTools(); got != test.tools {
			t.Errorf("%s takes %d tools, want %d", test.url, got, test.tools)
		}
		if got := model.Shortened(long); (got == "") != (test.cut == "") || !strings.Contains(got, test.cut) {
			t.Errorf("%s: shortened: %q, want %q", test.url, got, test.cut)
		}
		if err := model.Screen(long); (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: screened: %v, want %q", test.url, err, test.refused)
		}
	}
}

// A note about the schema has its room before the description, unless it is too long.
func TestShortDescriptionWithANote(t *testing.T) {
	for _, test := range []struct{ words, most int }{{1, 400}, {300, 400}, {1, 30}} {
		model, err := openaimodel.New("m", &openaimodel.Options{BaseURL: "http://localhost/v1", MaxDescription: test.most})
		if err != nil {
			t.Fatal(err)
		}
		schema := fmt.Sprintf(`{"type":"object","properties":{"a":{}},"not":{"required":["%s"]}}`, strings.Repeat("b", test.words))
		text := model.Shortened(&invoker.Definition{Name: "x", Description: strings.Repeat("word ", 200), InputSchema: json.RawMessage(schema)})
		if !strings.Contains(text, "are left out") {
			t.Errorf("%v: %q", test, text)
		}
	}
}
