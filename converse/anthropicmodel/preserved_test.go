// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// preserving is a server of a model with preserved thinking: a signature holds for the
// conversation before it, without the first blocks of thinking (platform.claude.com,
// Preserved thinking).
type preserving struct {
	refusals int
	bodies   []string // of the requests that were accepted
}

// prefix returns the name of a conversation before a message.
func (*preserving) prefix(body gjson.Result, messages []gjson.Result) string {
	text := body.Get("system").Raw + body.Get("tools").Raw
	for _, m := range messages {
		text += m.Get("role").Str
		for _, block := range m.Get("content").Array() {
			if block.Get("type").Str != "thinking" {
				text += block.Raw
			}
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (p *preserving) respond(r *openaiserver.Request) openaiserver.Reply {
	body := gjson.ParseBytes(r.Body)
	messages := body.Get("messages").Array()
	for i, m := range messages {
		for k, block := range m.Get("content").Array() {
			if block.Get("type").Str == "thinking" && block.Get("signature").Str != p.prefix(body, messages[:i]) {
				p.refusals++
				return openaiserver.Failure{Status: 400, Message: fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block. "+
					"The block is bound to a different conversation.", i, k)}
			}
		}
	}
	p.bodies = append(p.bodies, string(r.Body))
	if body.Get("max_tokens").Int() < 32000 {
		return openaiserver.Message{Text: "They talked."} // a summary
	}
	return openaiserver.Recording([]byte(fmt.Sprintf(`{"type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[`+
		`{"type":"thinking","thinking":"thought %[1]d","signature":"%[2]s"},`+
		`{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"web_search","input":{"query":"q"}},`+
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%[1]d","content":[]},`+
		`{"type":"text","text":"answer %[1]d"}],"usage":{"input_tokens":%[3]d,"output_tokens":10}}`, len(p.bodies), p.prefix(body, messages), len(r.Body)/4)))
}

func unused(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }

// TestPreservedThinking: after the conversation has changed, its older thinking is left out,
// also by other processes, and newer thinking, and what tools of the server did, is sent.
func TestPreservedThinking(t *testing.T) {
	long := strings.Repeat("word ", 400)
	for name, test := range map[string]struct {
		tools    *ensemble.Roster // from the change on
		compact  bool
		refusals int
	}{
		"other tools": {rosterOf(t, map[string]func(context.Context, *invoker.Call) (invoker.Output, error){"look": unused}), false, 1},
		"a summary":   {nil, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := new(preserving)
			_, base := start(t, openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: openaiserver.Respond(server.respond)}}}, &openaiserver.Options{Trust: true})
			model := newModel(t, "m", base, anthropicmodel.Options{NoStream: true, MaxRetries: -1})
			options := &converse.Options{ID: "talk", Log: history.NewMemory(), Compaction: &converse.Compaction{Window: 1 << 20, Keep: 2}}
			var tools *ensemble.Roster
			ask := func() string {
				if _, err := converse.New(model, tools, options).Ask(t.Context(), canister.Text(long)); err != nil {
					t.Fatal(err)
				}
				return server.bodies[len(server.bodies)-1]
			}
			for range 4 {
				ask()
			}
			if server.refusals > 0 {
				t.Fatal("the history is not sent as it was")
			}
			if tools = test.tools; test.compact {
				talk := converse.New(model, tools, options)
				if err := talk.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, err := range talk.Compact(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			first := ask()
			for range 2 {
				body := ask()
				if newest := gjson.Get(body, "messages.#(role==\"assistant\")#|@reverse|0.content.#.type").Raw; newest != `["thinking","server_tool_use","web_search_tool_result","text"]` {
					t.Errorf("the newest answer is sent as %s", newest)
				}
			}
			if strings.Contains(first, "thought") || !strings.Contains(first, "srvtoolu_") {
				t.Errorf("after the change: %s", first)
			}
			if server.refusals != test.refusals {
				t.Errorf("%d refusals, want %d", server.refusals, test.refusals)
			}
		})
	}
}

// TestForcedCalls: a model that cannot be forced to call a tool is asked without that, from
// then on.
func TestForcedCalls(t *testing.T) {
	for api, says := range map[string]string{
		"messages": `tool_choice: type "tool" and "any" are not supported for this model.`,
		"chat":     "tool_choice 'required' is incompatible with thinking enabled", "responses": "tool_choice: required is not supported with this model",
	} {
		refusals := 0
		respond := openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
			if choice := gjson.GetBytes(r.Body, "tool_choice"); choice.Str == "required" || choice.Get("type").Str == "any" {
				refusals++
				return openaiserver.Failure{Status: 400, Message: says}
			}
			return openaiserver.Message{Text: "Fine."}
		})
		model := modelOf(t, api, settings{url: startServer(t, openaiserver.Step{Reply: respond}).URL()})
		for range 2 {
			forced := request(user("u", "Hi"))
			forced.RequireInvocation, forced.Purpose, forced.Tools = true, converse.PurposeSampling, &converse.Toolset{Definitions: []*invoker.Definition{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
			if text, _, err := run(t.Context(), model, forced); err != nil || text != "Fine." {
				t.Errorf("%s: %q, %v", api, text, err)
			}
		}
		if refusals != 1 {
			t.Errorf("%s: %d refusals, want 1", api, refusals)
		}
	}
}
