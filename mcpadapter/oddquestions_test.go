// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are tested too, with features that the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// oddQuestions are members of questions with null where the SDK has a pointer.
var oddQuestions = map[string]string{
	"no question":           `null`,
	"no parameters":         `{"method":"elicitation/create"}`,
	"null parameters":       `{"method":"elicitation/create","params":null}`,
	"a null property":       `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":null}}}}`,
	"a null alternative":    `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[null]}}}}}`,
	"a null item":           `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[null]}}}}}}`,
	"null items":            `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":null}}}}}`,
	"a null list":           `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","allOf":[null]}}}`,
	"a reference to itself": `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","allOf":[{"$REF":"#"}]}}}`,
	"a null hint":           `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"modelPreferences":{"hints":[null]}}}`,
	"a null message":        `{"method":"sampling/createMessage","params":{"messages":[null],"maxTokens":1}}`,
	"null content":          `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":null},{"role":"user","content":[null]}],"maxTokens":1}}`,
	"null messages":         `{"method":"sampling/createMessage","params":{"messages":null,"maxTokens":1}}`,
	"null sampling":         `{"method":"sampling/createMessage","params":null}`,
	"a null tool":           `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[null]}}`,
	"null roots":            `{"method":"roots/list","params":null}`,
}

// openOdd connects to a server, and lets a person and a model answer its questions.
func openOdd(t *testing.T, s *mcptest.Scripted) invoker.Invoker {
	t.Helper()
	return mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{
		Protocol: "2025-11-25",
		Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"a": "b"}}, nil
		},
		Sample: func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error) {
			return &invoker.SampleResult{Text: "yes"}, nil
		},
		SampleTools: true,
	}})), "write")
}

// TestOddQuestions: no question of a server ends this program.
func TestOddQuestions(t *testing.T) {
	for name, question := range oddQuestions {
		t.Run(name, func(t *testing.T) {
			answered := make(chan struct{}, 1)
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				switch {
				case m.Method == "tools/call" && question != "null":
					send := mcptest.StartStream(w)
					send(`{"jsonrpc":"2.0","id":"question",` + question[1:])
					select {
					case <-answered:
					case <-r.Context().Done():
					}
					send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID))
				case m.Method == "tools/call":
					mcptest.Reply(w, m, `{"content":[]}`)
				case string(m.ID) == `"question"`:
					answered <- struct{}{}
					w.WriteHeader(http.StatusAccepted)
				default:
					return false
				}
				return true
			})
			if _, err := openOdd(t, s).Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOddQuestionsInResults: the same for questions in a result (SEP-2322).
func TestOddQuestionsInResults(t *testing.T) {
	for name, question := range oddQuestions {
		t.Run(name, func(t *testing.T) {
			first := true
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				if !first {
					mcptest.Reply(w, m, `{"content":[]}`)
					return true
				}
				first = false
				mcptest.Reply(w, m, `{"resultType":"input_required","inputRequests":{"question":`+question+`}}`)
				return true
			})
			write := openOdd(t, s)
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil && mcptest.CodeOf(err) != invoker.ExecutionFailed {
				t.Error(err)
			}
			if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}
