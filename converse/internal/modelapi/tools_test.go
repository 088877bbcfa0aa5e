// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// encoder returns tools whose form is their name, and counts how often a tool is encoded.
func encoder(t *testing.T, hosted ...map[string]any) (tools *Tools, encoded *int) {
	t.Helper()
	encoded = new(int)
	tools, err := NewTools(hosted, func(dst []byte, d *invoker.Definition) ([]byte, error) {
		*encoded++
		if d.Name == "" {
			return append(dst, "half of it"...), errors.New("no name")
		}
		return jsontext.AppendString(dst, d.Name), nil
	}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return tools, encoded
}

func toolset(names ...string) *converse.Toolset {
	set := &converse.Toolset{}
	for _, name := range names {
		set.Definitions = append(set.Definitions, &invoker.Definition{Name: name})
	}
	return set
}

func TestToolsMember(t *testing.T) {
	hosted := map[string]any{"type": "web_search"}
	for name, test := range map[string]struct {
		hosted  []map[string]any
		set     *converse.Toolset
		purpose converse.Purpose
		want    string
	}{
		"none":            {nil, toolset(), converse.PurposeAnswer, ""},
		"no set":          {nil, nil, converse.PurposeAnswer, ""},
		"some":            {nil, toolset("a", "b"), converse.PurposeAnswer, `,"tools":["a","b"]`},
		"refused":         {nil, toolset("", "a", ""), converse.PurposeAnswer, `,"tools":["a"]`},
		"all refused":     {nil, toolset(""), converse.PurposeAnswer, ""},
		"hosted":          {[]map[string]any{hosted}, toolset("a"), converse.PurposeAnswer, `,"tools":[{"type":"web_search"},"a"]`},
		"hosted, no set":  {[]map[string]any{hosted}, nil, converse.PurposeAnswer, `,"tools":[{"type":"web_search"}]`},
		"hosted, sampled": {[]map[string]any{hosted}, toolset("a"), converse.PurposeSampling, `,"tools":["a"]`},
	} {
		tools, _ := encoder(t, test.hosted...)
		if got := new(Transcript).Tools(t.Context(), tools, &converse.Request{Tools: test.set, Purpose: test.purpose}); string(got) != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if _, err := NewTools([]map[string]any{{"f": func() {}}}, nil, nil); err == nil {
		t.Error("a hosted tool without a JSON form is accepted")
	}
}

// TestToolsOfSamplingAreNotCached: the tools that a tool brings along for its own requests
// do not displace those of conversations.
func TestToolsOfSamplingAreNotCached(t *testing.T) {
	tools, _ := encoder(t)
	for _, test := range []struct {
		purpose converse.Purpose
		cached  int
	}{{converse.PurposeAnswer, 1}, {converse.PurposeSampling, 1}, {converse.PurposeFinalAnswer, 2}} {
		request := &converse.Request{Purpose: test.purpose, Tools: toolset("f")}
		if got := new(Transcript).Tools(t.Context(), tools, request); string(got) != `,"tools":["f"]` || len(tools.entries) != test.cached {
			t.Errorf("%s: %s, with %d toolsets cached", test.purpose, got, len(tools.entries))
		}
	}
}

// TestToolsAreEncodedOnce for a conversation, also when its model serves more rosters than
// it can cache the tools of.
func TestToolsAreEncodedOnce(t *testing.T) {
	const many = 3 * maxToolsets
	tools, encoded := encoder(t)
	var transcripts [many]Transcript
	var sets [many]*converse.Toolset
	for i := range sets {
		sets[i] = toolset(fmt.Sprint("f", i))
	}
	for range 3 {
		for i := range transcripts {
			transcripts[i].Tools(context.Background(), tools, &converse.Request{Tools: sets[i]})
		}
	}
	if *encoded != many || len(tools.entries) != maxToolsets {
		t.Errorf("%d tools were encoded %d times, and %d sets are cached", many, *encoded, len(tools.entries))
	}
	last := &converse.Toolset{Definitions: sets[many-1].Definitions}
	new(Transcript).Tools(context.Background(), tools, &converse.Request{Tools: last})
	if *encoded != many {
		t.Error("an equal toolset is encoded again")
	}
}
