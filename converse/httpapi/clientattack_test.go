// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// asking starts a server whose tool local__ask asks the person a question, which waits.
func asking(t *testing.T) *served {
	t.Helper()
	type in struct {
		What string `json:"what"`
	}
	question, err := invoker.New("ask", "Asks.", func(ctx context.Context, _ in) (string, error) {
		r, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Message: "Really?", Schema: json.RawMessage(`{"type":"object"}`)})
		if err != nil {
			return "", err
		}
		return "the person said " + string(r.Action), nil
	}, &invoker.Options{Hints: invoker.Hints{Idempotent: true}})
	if err != nil {
		t.Fatal(err)
	}
	big, err := invoker.New("big", "Returns much.", func(context.Context, in) (string, error) { return strings.Repeat("x", 700<<10), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", question, big))
	if err != nil {
		t.Fatal(err)
	}
	store := history.NewMemory()
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model(uses), roster, &converse.Options{ID: id, Log: store, Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(time.Hour, "")
		}}), nil
	}
	local, err := engine.NewLocal(store, open, &engine.Options{Poll: 20 * time.Millisecond, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, store: store, engine: local, feed: httpapi.NewFeed(local, store), owner: "ann"}
	handler := httpapi.New(s.feed, &httpapi.Options{Open: open, Owner: func(ctx context.Context) (string, error) { return "owner", nil }})
	s.server = httptest.NewServer(handler)
	t.Cleanup(func() {
		s.feed.Close()
		ended, end := context.WithCancel(context.Background())
		end()
		_ = local.Close(ended)
		s.server.Close()
		_ = roster.Close(context.Background())
	})
	return s
}

// A question of a server's tool is not answered by a result of a client's, over any of the APIs.
// It turns red if given does not look at the mark of the wait.
func TestQuestionsAreNoCallsOfTheClient(t *testing.T) {
	s := asking(t)
	question := object{"id": "m1", "role": "user", "content": "use local__ask pick"}
	_, _, last := s.run(object{"threadId": "t", "messages": []object{question}, "tools": flatTools("pick")})
	if last["outcome"].(object)["type"] != "interrupt" {
		t.Fatalf("it ended with %v", last)
	}
	id := ""
	for info := range s.store.List(t.Context(), history.Filter{}) {
		id = info.ID
	}
	ids := map[string]string{}
	for _, call := range ofKind[canister.Invocation](s, id) {
		ids[call.Name] = call.ID
	}
	waits := ofKind[canister.Wait](s, id)
	if len(waits) != 2 || waits[0].For != canister.WaitElicitation || waits[1].For != canister.WaitElicitation {
		t.Fatalf("the waits are %v", waits)
	}
	result := func(id string) object { return object{"id": "r", "role": "tool", "toolCallId": id, "content": "yes"} }
	said := object{"id": "a1", "role": "assistant", "toolCalls": []object{{"id": ids["local__ask"]}, {"id": ids["pick"]}}}
	s.want(http.StatusBadRequest, "POST", "/agui", object{"threadId": "t", "runId": "r", "messages": []object{said, result(ids["local__ask"])}})

	call := httpapi.CallID(id, ids["local__ask"])
	s.want(http.StatusBadRequest, "POST", "/v1/responses", object{"input": []object{callOutput(call, "yes")}})
	s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", object{"messages": []object{
		user("x"), {"role": "assistant", "tool_calls": []object{{"id": call, "type": "function", "function": object{"name": "local__ask", "arguments": "{}"}}}}, toolMessage(call, "yes"),
	}})
	if answers := ofKind[canister.Answer](s, id); len(answers) != 0 {
		t.Errorf("the answers are %v", answers)
	}
}

// A run whose list has a long result of a server's tool goes on: the server has it in the log.
func TestRunWithALongResultOfTheServer(t *testing.T) {
	s := asking(t)
	question := object{"id": "m1", "role": "user", "content": "use local__big"}
	s.run(object{"threadId": "t", "messages": []object{question}})
	id, call := "", ""
	for info := range s.store.List(t.Context(), history.Filter{}) {
		id = info.ID
	}
	for _, one := range ofKind[canister.Invocation](s, id) {
		call = one.ID
	}
	text := canister.TextOf(ofKind[canister.Result](s, id)[0].Content)
	messages := []object{question, {"id": "a1", "role": "assistant", "toolCalls": []object{{"id": call}}},
		{"id": "r", "role": "tool", "toolCallId": call, "content": text}, {"id": "m2", "role": "user", "content": "more"}}
	s.want(http.StatusOK, "POST", "/agui", object{"threadId": "t", "runId": "r2", "messages": messages})
}

// Odd schemas and descriptions are refused or stored, and never fail in the server.
func TestOddTools(t *testing.T) {
	s := serve(t, uses, nil, nil)
	deep := func(n int) string {
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + "{}" + strings.Repeat("}}", n)
	}
	for name, tool := range map[string]string{
		"invalid UTF-8":       `{"name":"pick","parameters":{"type":"object","description":"` + "\xff" + `"}}`,
		"twice":               `{"name":"pick","parameters":{"type":"object","type":"object"}}`,
		"deep 100":            `{"name":"pick","parameters":` + deep(100) + `}`,
		"deep 4000":           `{"name":"pick","parameters":` + deep(4000) + `}`,
		"deep 4499":           `{"name":"pick","parameters":` + deep(4499) + `}`,
		"NUL":                 `{"name":"pick","description":"a\u0000b"}`,
		"surrogate":           `{"name":"pick","description":"a\ud800b"}`,
		"surrogate in schema": `{"name":"pick","parameters":{"type":"object","description":"a\ud800b"}}`,
		"null":                `{"name":"pick","parameters":null}`,
		"many <":              `{"name":"pick","description":"` + strings.Repeat("<", 250<<10) + `"}`,
		"pattern":             `{"name":"pick","parameters":{"type":"object","properties":{"a":{"type":"string","pattern":"((a{1,1000}){1,1000})"}}}}`,
	} {
		body := `{"threadId":"` + name + `","runId":"r","messages":[{"id":"m","role":"user","content":"use pick"}],"tools":[` + tool + `]}`
		a := s.do("POST", "/agui", body)
		size := 0
		for info := range s.store.List(t.Context(), history.Filter{}) {
			for _, u := range ofKind[canister.User](s, info.ID) {
				size = 0
				for _, v := range u.Metadata {
					size += len(v)
				}
			}
			break
		}
		if a.status >= 500 || strings.Contains(a.text, "RUN_ERROR") || size > 300<<10 {
			t.Errorf("%s: status %d, %d bytes of metadata: %.300q", name, a.status, size, a.text)
		}
	}
}

// TestStoredAfterSeparateAnswers: a stored response ends where the next request answered.
func TestStoredAfterSeparateAnswers(t *testing.T) {
	for name, input := range map[string]string{"approvals alone": "use local__do local__do", "client and approval": "use pick local__do"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, uses, ask, nil)
			first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": input, "tools": flatTools("pick")}).form
			var items []object
			for _, one := range first["output"].([]any) {
				switch item := one.(object); item["type"] {
				case "mcp_approval_request":
					items = append(items, object{"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": true})
				case "function_call":
					items = slices.Insert(items, 0, callOutput(item["call_id"], "picked"))
				}
			}
			if len(items) != 2 {
				t.Fatalf("got %v", first)
			}
			second := s.want(http.StatusOK, "POST", "/v1/responses", object{"previous_response_id": first["id"], "input": items[:1]}).form
			third := s.want(http.StatusOK, "POST", "/v1/responses", object{"previous_response_id": second["id"], "input": items[1:]}).form
			for i, response := range []object{first, second, third} {
				stored := s.want(http.StatusOK, "GET", "/v1/responses/"+response["id"].(string), nil).form
				if i == 1 && slices.Contains(output(stored), output(third)[len(output(third))-1]) {
					t.Errorf("stored response 2 has the output of response 3")
				}
			}
		})
	}
}
