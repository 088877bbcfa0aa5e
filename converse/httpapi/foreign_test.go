// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/history"
)

// TestForeignIDs: at each path of the front ends, the ID of another owner's conversation, response,
// call or wait is answered exactly as one that does not exist.
func TestForeignIDs(t *testing.T) {
	s := serve(t, uses, ask, nil)
	calling := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	asking := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use local__do"}).form
	call, conversation := functionCalls(calling)["pick"], calling["conversation"].(object)["id"].(string)
	wait := asking["output"].([]any)[0].(object)["id"].(string)
	before := s.lengths()
	made := strings.NewReplacer( // from the IDs of ann to IDs that nobody has
		conversation, strings.Repeat("X", len(conversation)), wait, strings.Repeat("Y", len(wait)),
		asking["conversation"].(object)["id"].(string), strings.Repeat("Z", len(conversation)))
	result := `{"type":"function_call_output","call_id":"` + call + `","output":"mine"}`
	toolCall := `{"role":"assistant","content":null,"tool_calls":[{"id":"` + call + `","type":"function","function":{"name":"pick","arguments":"{}"}}]}`
	reply := `{"type":"mcp_approval_response","approval_request_id":"` + wait + `","approve":true}`
	eve := s.as("eve")
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{404, "GET", "/v1/responses/" + calling["id"].(string), ""},
		{404, "POST", "/v1/responses/" + calling["id"].(string) + "/cancel", ""},
		{404, "POST", "/v1/responses", `{"input":"x","previous_response_id":"` + calling["id"].(string) + `"}`},
		{404, "POST", "/v1/responses", `{"input":"x","conversation":"` + conversation + `"}`},
		{404, "POST", "/v1/responses", `{"input":[` + result + `],"previous_response_id":"` + calling["id"].(string) + `"}`},
		{404, "POST", "/v1/responses", `{"input":[` + result + `],"conversation":"` + conversation + `"}`},
		{404, "POST", "/v1/responses", `{"input":[` + reply + `],"previous_response_id":"` + asking["id"].(string) + `"}`},
		{404, "POST", "/v1/responses", `{"input":[` + reply + `],"conversation":"` + asking["conversation"].(object)["id"].(string) + `"}`},
		{400, "POST", "/v1/responses", `{"input":[` + result + `]}`},
		{400, "POST", "/v1/chat/completions", `{"messages":[{"role":"tool","tool_call_id":"` + call + `","content":"mine"}]}`},
		{400, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"use pick"},` + toolCall + `,{"role":"tool","tool_call_id":"` + call + `","content":"mine"}]}`},
		{400, "POST", "/agui", `{"threadId":"` + conversation + `","runId":"r","resume":[{"interruptId":"` + wait + `","status":"resolved","payload":{"approved":true}}]}`},
	} {
		send := func(path, body string) answer {
			if body == "" {
				return eve.do(c.method, path, nil)
			}
			return eve.do(c.method, path, body)
		}
		foreign, missing := send(c.path, c.body), send(made.Replace(c.path), made.Replace(c.body))
		if foreign.status != c.status || foreign.status != missing.status || foreign.text != missing.text {
			t.Errorf("%s %s %s: foreign %d %s, missing %d %s", c.method, c.path, c.body, foreign.status, foreign.text, missing.status, missing.text)
		}
	}
	if after := s.lengths(); len(after) != len(before) || after[conversation] != before[conversation] {
		t.Errorf("the conversations were %v and are %v", before, after)
	}
}

// TestForeignChats: the same messages, thread or key of another owner begin another conversation.
func TestForeignChats(t *testing.T) {
	s := serve(t, uses, nil, nil)
	for _, c := range []struct {
		path string
		body object
		key  string
	}{
		{"/v1/chat/completions", object{"messages": []object{user("hello"), {"role": "assistant", "content": "You said: hello local__do"}, user("more")}}, ""},
		{"/agui", object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "hello"}}}, ""},
		{"/api/conversations", object{"message": "hello"}, "key"},
	} {
		if c.path == "/v1/chat/completions" {
			s.want(http.StatusOK, "POST", c.path, object{"messages": []object{user("hello")}})
		}
		of := func(who *served) string {
			a := who.do("POST", c.path, c.body, "Idempotency-Key", c.key)
			if id, is := a.form["id"].(string); is && c.key != "" {
				return id
			}
			return a.header.Get("Consort-Conversation")
		}
		ann, eve := of(s), of(s.as("eve"))
		if ann == "" || eve == "" || ann == eve {
			t.Errorf("%s: the conversations are %q and %q", c.path, ann, eve)
		}
		for info, err := range s.store.List(t.Context(), history.Filter{Owner: "owner-eve"}) {
			if err != nil || info.ID == ann {
				t.Errorf("%s: eve has %v, %v", c.path, info, err)
			}
		}
	}
}

// lengths returns the lengths of the logs of all conversations.
func (s *served) lengths() map[string]int {
	s.t.Helper()
	all := map[string]int{}
	for info, err := range s.store.List(s.t.Context(), history.Filter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all[info.ID] = info.Length
	}
	return all
}
