// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// TestToolsAreEncodedOnce for a conversation, also when its model serves more
// rosters than it can remember the tools of.
func TestToolsAreEncodedOnce(t *testing.T) {
	model, err := New("m", &Options{BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	const many = 3 * maxToolCache
	var transcripts [many]transcript
	var first [many]*encodedTools
	var sets [many]*converse.Toolset
	for i := range sets {
		sets[i] = &converse.Toolset{Definitions: []*invoker.Definition{{Name: fmt.Sprint("f", i), InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	}
	for round := range 3 {
		for i := range transcripts {
			request := &converse.Request{Tools: sets[i], History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}}}}
			if _, _, err := transcripts[i].body(t.Context(), model, request); err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				first[i] = transcripts[i].tools
			} else if transcripts[i].tools != first[i] {
				t.Fatalf("round %d: the tools of %d are encoded again", round, i)
			}
		}
	}
}
