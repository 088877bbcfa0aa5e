// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/invoker"
)

// The tools that a tool brings along for its own requests are not kept.
func TestToolsOfSamplingAreNotKept(t *testing.T) {
	model, err := New("m", &Options{BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		purpose converse.Purpose
		kept    int
	}{{converse.PurposeAnswer, 1}, {converse.PurposeSampling, 1}, {converse.PurposeFinalAnswer, 2}} {
		request := &converse.Request{
			Purpose: test.purpose, History: []canister.Canister{canister.User{Head: canister.Head{ID: "u"}}},
			Tools: &converse.Toolset{Definitions: []*invoker.Definition{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}},
		}
		body, _, err := encode(t, new(transcript), model, request)
		if err != nil || !strings.Contains(string(body), `"name":"f"`) || len(model.tools.entries) != test.kept {
			t.Errorf("%s: %s, %v, with %d toolsets kept", test.purpose, body, err, len(model.tools.entries))
		}
	}
}

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
			if _, _, err := encode(t, &transcripts[i], model, request); err != nil {
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

// encode returns the body of a request.
func encode(t *testing.T, in *transcript, model *Model, request *converse.Request) ([]byte, *modelapi.BodyRef, error) {
	t.Helper()
	return (&chat{ctx: t.Context(), m: model, request: request, transcript: in}).Encode()
}
