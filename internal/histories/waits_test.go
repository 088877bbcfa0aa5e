// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// A person sees who asks, where a link leads, and what a form wants, before answering.
func TestQuestionsAreShown(t *testing.T) {
	for want, question := range map[string]invoker.ElicitRequest{
		"  shop asks: Which seat?\n  row (integer): Row (from the front)\n  window (boolean): window [y/n] optional": {
			Server: "shop", Message: "Which seat?",
			Schema: json.RawMessage(`{"type":"object","required":["row"],"properties":{"row":{"type":"integer","title":"Row","description":"from the front"},"window":{"type":"boolean"}}}`),
		},
		"  asks: Pay.\n  at: https://shop.example/pay<U+202E>": {Message: "Pay.", URL: "https://shop.example/pay\u202e"},
		"  asks: Pay.\n  at: https://shop.example@evil.example/\n  The page is on the host evil.example: the part before the @ does not belong to its name.": {
			Message: "Pay.", URL: "https://shop.example@evil.example/",
		},
		"  asks: What?\n  for an answer of the schema {\"properties\":1}": {Message: "What?", Schema: json.RawMessage(`{"properties":1}`)},
	} {
		if got := strings.Join(questionLines(&question), "\n"); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
