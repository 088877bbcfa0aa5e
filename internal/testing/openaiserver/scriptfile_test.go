// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func TestParseScript(t *testing.T) {
	script, err := openaiserver.ParseScript([]byte(`{
	  "repeat": true,
	  "provider": "kimi",
	  "steps": [
	    {"expect": {"last_role":"user","contains":["a"],"tool_messages":2,"offers":["x"],"no_tools":true,"model":"m"},
	     "before": [{"failure": {"status":429,"message":"m","type":"t","param":"p","code":"c","headers":{"retry-after":"1"},"delay":"1s"}}],
	     "message": {"text":"t","reasoning":"r","refusal":"no","calls":[{"id":"i","name":"n","arguments":{"a":1}},{"name":"n","arguments":"{\"a"},{"name":"n"}],
	                 "finish":"length","usage":{"prompt_tokens":1,"completion_tokens":2,"cached_tokens":3},"delta":4,"pace":"5ms","delay":"6ms"}},
	    {"replay": {"status":201,"headers":{"x-a":"b"},"body":"abc","split":2,"pause":"1ms","end":"cut","delay":"2ms","wire":true}},
	    {"oddity": "eof-empty"}
	  ]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := openaiserver.Script{Repeat: true, Provider: "kimi", Steps: []openaiserver.Step{
		{
			Expect: openaiserver.Expect{LastRole: "user", Contains: []string{"a"}, ToolMessages: 2, Offers: []string{"x"}, NoTools: true, Model: "m"},
			Before: []openaiserver.Reply{openaiserver.Failure{Status: 429, Message: "m", Type: "t", Param: "p", Code: "c",
				Header: http.Header{"Retry-After": {"1"}}, Delay: time.Second}},
			Reply: openaiserver.Message{Text: "t", Reasoning: "r", Refusal: "no",
				Calls:  []openaiserver.Call{{ID: "i", Name: "n", Arguments: `{"a":1}`}, {Name: "n", Arguments: `{"a`}, {Name: "n"}},
				Finish: "length", Usage: &openaiserver.Usage{PromptTokens: 1, CompletionTokens: 2, CachedTokens: 3},
				Delta: 4, Pace: 5 * time.Millisecond, Delay: 6 * time.Millisecond},
		},
		{Reply: openaiserver.Replay{Status: 201, Header: http.Header{"X-A": {"b"}}, End: openaiserver.EndCut, Delay: 2 * time.Millisecond, Wire: true,
			Parts: []openaiserver.Part{{Data: []byte("ab"), Pause: time.Millisecond}, {Data: []byte("c"), Pause: time.Millisecond}}}},
	}}
	odd := script.Steps[2].Reply.(openaiserver.Respond)(&openaiserver.Request{}).(openaiserver.Replay)
	script.Steps = script.Steps[:2]
	if !reflect.DeepEqual(script, want) {
		t.Errorf("got %+v\nwant %+v", script, want)
	}
	if len(odd.Body()) != 0 || odd.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("oddity: %+v", odd)
	}
}

func TestParseScriptErrors(t *testing.T) {
	tests := map[string]string{
		`{`:                   "unexpected EOF",
		`{} {}`:               "more follows",
		`{"step":[]}`:         `unknown field "step"`,
		`{"steps":[{}]}`:      "step 0: needs exactly one of",
		`{"provider":"acme"}`: `there is no provider "acme"`,
		`{"steps":[{"message":{},"failure":{}}]}`:                 "has 2",
		`{"steps":[{"message":{},"before":[{}]}]}`:                "step 0: before 0: needs",
		`{"steps":[{"message":{}},{"oddity":"x"}]}`:               `step 1: there is no oddity "x"`,
		`{"steps":[{"replay":{"end":"bang"}}]}`:                   `end is "bang"`,
		`{"steps":[{"message":{"pace":"soon"}}]}`:                 "invalid duration",
		`{"steps":[{"message":{"calls":[{"argument":"typo"}]}}]}`: `unknown field "argument"`,
	}
	for data, want := range tests {
		if _, err := openaiserver.ParseScript([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", data, err, want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`{"steps":[{"message":{"calls":[{"arguments":null}]}},{"replay":{"body":"x","split":-1}},{"oddity":"html"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		script, err := openaiserver.ParseScript(data)
		if err != nil {
			return
		}
		for i, s := range script.Steps {
			if s.Reply == nil {
				t.Errorf("step %d has no reply", i)
			}
		}
		openaiserver.New(script, nil).Close()
	})
}
