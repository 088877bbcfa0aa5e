// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/tidwall/gjson"
)

// A history holds UTF-8 alone.
func TestFinishIsText(t *testing.T) {
	var a accumulator
	a.Add("", gjson.Parse("{\"choices\":[{\"finish_reason\":\"odd\xff\"}]}"))
	if reason := string(a.reason()); !utf8.ValidString(reason) || reason == "" {
		t.Errorf("%q", reason)
	}
}

// Servers count reasoning in completion_tokens or beside it. The example of xAI is from its
// API reference, Chat completions.
func TestReasoningIsCounted(t *testing.T) {
	for usage, want := range map[string]canister.Usage{
		`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`: {Input: 32, Output: 103, Reasoning: 94},
		`{"prompt_tokens":32,"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":94}}`:                    {Input: 32, Output: 103, Reasoning: 94},
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}`:                                                      {Input: 10, Output: 30},
		`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}`: {Input: 10, Output: 50, Reasoning: 40},
		`{"prompt_tokens":10,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":40}}`:                   {Input: 10, Output: 50, Reasoning: 40},
		`{"prompt_tokens":10,"completion_tokens":50,"total_tokens":1}`:                                                      {Input: 10, Output: 50},
	} {
		var a accumulator
		a.Add("", gjson.Parse(`{"usage":`+usage+`}`))
		if a.usage == nil || *a.usage != want {
			t.Errorf("%s: %+v, want %+v", usage, a.usage, want)
		}
	}
}
