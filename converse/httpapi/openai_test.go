// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// object is a JSON object of a request.
type object = map[string]any

func user(text string) object { return object{"role": "user", "content": text} }

func assistant(text string) object { return object{"role": "assistant", "content": text} }

// chatText returns the text of a chat completion.
func chatText(a answer) string {
	return a.form["choices"].([]any)[0].(object)["message"].(object)["content"].(string)
}

// TestChatContinues: the next request of a chat continues the stored conversation, and one
// with an edited history begins another.
func TestChatContinues(t *testing.T) {
	s := serve(t, echo, nil, nil)
	messages := []object{{"role": "system", "content": "Be kind."}, user("hello")}
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"model": "consort", "messages": messages, "temperature": 0.2})
	if chatText(first) != "You said: hello" || first.header.Get("Consort-Ignored") != "temperature" {
		t.Fatalf("got %s, %v", first.text, first.header)
	}
	id := first.header.Get("Consort-Conversation")
	messages = append(messages, assistant(" You said: hello\n"), user("more"))
	second := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
	if second.header.Get("Consort-Conversation") != id || chatText(second) != "You said: more" {
		t.Errorf("the chat was not continued: %s", second.text)
	}
	edited := append(slices.Clone(messages[:3]), user("else"))
	third := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": edited})
	other := third.header.Get("Consort-Conversation")
	log, err := history.From(t.Context(), s.store, other, 0)
	if err != nil || other == id || len(log) != 5 || log[0].Kind() != canister.KindSupervisor || log[2].Kind() != canister.KindAssistant {
		t.Errorf("the edited chat is %v, %v", log, err)
	}
	messages = append(messages, assistant("You said: more"), user("x"))
	foreign := s.as("bob").want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
	if at := foreign.header.Get("Consort-Conversation"); at == id || at == other {
		t.Error("another caller continues the chat")
	}
}

// stream sends a request and returns the events of its stream.
func (s *served) stream(path string, body object) (all []streamed) {
	s.t.Helper()
	response := s.request("POST", path, body, "Accept", "text/event-stream")
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("POST %s: status %d", path, response.StatusCode)
	}
	if err := readStream(response, func(e streamed) bool { all = append(all, e); return true }); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// TestChatStream: the pieces of a stream are the text of the turn, with its calls between.
func TestChatStream(t *testing.T) {
	s := serve(t, echo, nil, nil)
	text, finish, usage := "", "", false
	events := s.stream("/v1/chat/completions", object{
		"messages": []object{user("call: it")}, "stream": true, "stream_options": object{"include_usage": true},
	})
	for _, e := range events[:len(events)-1] {
		var chunk struct {
			Choices []struct {
				Delta  struct{ Content string }
				Finish string `json:"finish_reason"`
			}
			Usage *struct {
				Total int `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			text, finish = text+choice.Delta.Content, choice.Finish
		}
		usage = usage || chunk.Usage != nil && chunk.Usage.Total == 15
	}
	if text != "I look. \n\nYou said: did it" || finish != "stop" || !usage || events[len(events)-1].data != "[DONE]" {
		t.Errorf("the text is %q, it ended with %q, usage %v", text, finish, usage)
	}
}

// TestChatApproval: a chat program is told what the conversation waits for, and answers with
// a message.
func TestChatApproval(t *testing.T) {
	for _, c := range []struct{ say, want string }{{"/allow", "did it"}, {"/deny too dear", "too dear"}} {
		s := serve(t, echo, ask, nil)
		messages := []object{user("call: it")}
		first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
		if !strings.Contains(chatText(first), "local__do") || !strings.Contains(chatText(first), "/allow") {
			t.Fatalf("the wait is told as %q", chatText(first))
		}
		messages = append(messages, assistant(chatText(first)))
		s.want(http.StatusConflict, "POST", "/v1/chat/completions", object{"messages": append(messages, user("well"))})
		second := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": append(messages, user(c.say))})
		isSame := second.header.Get("Consort-Conversation") == first.header.Get("Consort-Conversation")
		if !isSame || !strings.HasSuffix(chatText(second), c.want) {
			t.Errorf("%s: %q", c.say, chatText(second))
		}
	}
}

// TestChatApprovalOfOneQuestion: an answer concerns the question that it follows, and no other chat
// with the same texts. If it is sent again, it approves nothing, and the model does not read it.
func TestChatApprovalOfOneQuestion(t *testing.T) {
	s := serve(t, echo, ask, nil)
	begun := object{"messages": []object{user("call: it")}}
	first, other := s.want(http.StatusOK, "POST", "/v1/chat/completions", begun), s.want(http.StatusOK, "POST", "/v1/chat/completions", begun)
	answer := object{"messages": []object{user("call: it"), assistant(chatText(first)), user("/allow")}}
	allowed := s.want(http.StatusOK, "POST", "/v1/chat/completions", answer)
	if got, want := allowed.header.Get("Consort-Conversation"), first.header.Get("Consort-Conversation"); got != want {
		t.Errorf("the answer went to %s, and not to %s", got, want)
	}
	before := s.lengths()
	for range 2 {
		if again := s.want(http.StatusConflict, "POST", "/v1/chat/completions", answer); !strings.Contains(again.text, "wait_not_open") {
			t.Errorf("the answer again: %s", again.text)
		}
	}
	if after := s.lengths(); !maps.Equal(before, after) {
		t.Errorf("the logs had the lengths %v, and have %v", before, after)
	}
	of := other.header.Get("Consort-Conversation")
	if open := s.want(http.StatusOK, "GET", "/api/conversations/"+of+"/waits", nil).form["waits"].([]any); len(open) != 1 {
		t.Errorf("the other chat has the waits %v", open)
	}
}

// TestChatAllowsWhatItHasShown: a chat cannot allow the call of a message that came from elsewhere: it has never
// shown it.
func TestChatAllowsWhatItHasShown(t *testing.T) {
	s := serve(t, echo, ask, nil)
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("hello")}})
	id := first.header.Get("Consort-Conversation")
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", object{"message": "call: it"})
	s.ended(id, 3)
	chat := func(text string) object {
		return object{"messages": []object{user("hello"), assistant(chatText(first)), user(text)}}
	}
	for _, text := range []string{"well", "/allow"} {
		a := s.want(http.StatusConflict, "POST", "/v1/chat/completions", chat(text))
		if strings.Contains(a.text, "/allow") || !strings.Contains(a.text, "/api/conversations/"+id+"/waits/") {
			t.Errorf("%s: %s", text, a.text)
		}
	}
	if answers := ofKind[canister.Answer](s, id); len(answers) != 0 {
		t.Fatalf("the answers are %v", answers)
	}
	s.want(http.StatusOK, "POST", "/v1/chat/completions", chat("/deny too dear"))
}

// output returns the types of the items of a response, with their texts.
func output(response object) (all []string) {
	for _, one := range response["output"].([]any) {
		item := one.(object)
		switch text := item["type"].(string); text {
		case "message":
			all = append(all, "message "+item["content"].([]any)[0].(object)["text"].(string))
		case "mcp_call":
			result, _ := item["output"].(string)
			all = append(all, fmt.Sprintf("%s %s.%s %s %s %s", text, item["server_label"], item["name"], item["arguments"], item["status"], result))
		default:
			all = append(all, text)
		}
	}
	return all
}

// TestResponses: a response names a position of the log: it can be read again, continued, and
// continued once more from the same place.
func TestResponses(t *testing.T) {
	s := serve(t, echo, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it", "instructions": "Be kind.", "store": true})
	want := []string{"message I look. ", `mcp_call local.do {"what":"it"} completed did it`, "message You said: did it"}
	if got := output(first.form); !slices.Equal(got, want) || first.form["status"] != "completed" {
		t.Errorf("got %q in %s", got, first.text)
	}
	id := first.form["id"].(string)
	again := s.want(http.StatusOK, "GET", "/v1/responses/"+id, nil)
	if got := output(again.form); !slices.Equal(got, want) || again.form["id"] != id || again.form["status"] != "completed" {
		t.Errorf("read again: %s", again.text)
	}
	var conversations []string
	for _, text := range []string{"one", "two"} {
		next := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": []object{user(text)}, "previous_response_id": id})
		if got := output(next.form); !slices.Equal(got, []string{"message You said: " + text}) || next.form["previous_response_id"] != id {
			t.Errorf("continued: %s", next.text)
		}
		conversations = append(conversations, next.form["conversation"].(object)["id"].(string))
	}
	if conversations[0] != first.form["conversation"].(object)["id"] || conversations[1] == conversations[0] {
		t.Errorf("the conversations are %q", conversations)
	}
	for _, path := range []string{"/v1/responses/" + id, "/v1/responses/" + id + "/cancel"} {
		method := map[bool]string{true: "POST", false: "GET"}[strings.HasSuffix(path, "cancel")]
		foreign := s.as("bob").want(http.StatusNotFound, method, path, nil)
		missing := s.want(http.StatusNotFound, method, strings.Replace(path, "resp_", "resp_X", 1), nil)
		if foreign.text != missing.text {
			t.Errorf("foreign %s, missing %s", foreign.text, missing.text)
		}
	}
	s.as("bob").want(http.StatusNotFound, "POST", "/v1/responses", object{"input": "x", "previous_response_id": id})
	s.as("bob").want(http.StatusNotFound, "POST", "/v1/responses", object{"input": "x", "conversation": conversations[0]})
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "x", "conversation": object{"id": conversations[0]}})
}

// TestResponseStream: the events of a stream build the response that is at its end.
func TestResponseStream(t *testing.T) {
	s := serve(t, echo, nil, nil)
	text, last := "", object{}
	for i, e := range s.stream("/v1/responses", object{"input": "call: it", "stream": true}) {
		if err := json.Unmarshal([]byte(e.data), &last); err != nil || last["sequence_number"] != float64(i) || last["type"] != e.name {
			t.Fatalf("event %d: %v in %s", i, err, e.data)
		}
		if e.name == "response.output_text.delta" {
			text += last["delta"].(string)
		}
	}
	response := last["response"].(object)
	stored := s.want(http.StatusOK, "GET", "/v1/responses/"+response["id"].(string), nil).form
	if text != "I look. You said: did it" || !slices.Equal(output(response), output(stored)) || last["type"] != "response.completed" {
		t.Errorf("the text is %q, the response %v, stored %v", text, response, stored)
	}
}

// TestResponseApproval: an approval is an item of the response, and the next one answers it.
func TestResponseApproval(t *testing.T) {
	s := serve(t, echo, ask, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"})
	got := output(first.form)
	if len(got) != 2 || got[1] != "mcp_approval_request" {
		t.Fatalf("got %q", got)
	}
	wait := first.form["output"].([]any)[1].(object)["id"]
	s.want(http.StatusConflict, "POST", "/v1/responses", object{"input": "hurry", "previous_response_id": first.form["id"]})
	approval := []object{{"type": "mcp_approval_response", "approval_request_id": wait, "approve": true}}
	reply := object{"previous_response_id": first.form["id"], "input": approval}
	second := s.want(http.StatusOK, "POST", "/v1/responses", reply)
	want := []string{`mcp_call local.do {"what":"it"} completed did it`, "message You said: did it"}
	if got := output(second.form); !slices.Equal(got, want) || second.form["output"].([]any)[0].(object)["approval_request_id"] != wait {
		t.Errorf("got %q in %s", got, second.text)
	}
	stored := s.want(http.StatusOK, "GET", "/v1/responses/"+second.form["id"].(string), nil)
	if got := output(stored.form); !slices.Equal(got, want) || stored.form["model"] != "test" {
		t.Errorf("stored: %q of the model %v", got, stored.form["model"])
	}
	s.want(http.StatusConflict, "POST", "/v1/responses", reply)
}

// TestResponseAnsweredElsewhere: a wait that is answered over /api continues its response, which a request can continue
// then.
func TestResponseAnsweredElsewhere(t *testing.T) {
	s := serve(t, echo, ask, nil)
	begun := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it", "background": true})
	id, path := begun.header.Get("Consort-Conversation"), "/v1/responses/"+begun.form["id"].(string)
	_, length := s.ended(id, 0)
	if got := output(s.want(http.StatusOK, "GET", path, nil).form); len(got) != 2 || got[1] != "mcp_approval_request" {
		t.Fatalf("got %q", got)
	}
	wait := ofKind[canister.Wait](s, id)[0].ID
	s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/waits/"+wait, object{"verdict": "allow"})
	s.ended(id, length+1)
	want := []string{"message I look. ", `mcp_call local.do {"what":"it"} completed did it`, "message You said: did it"}
	got := s.want(http.StatusOK, "GET", path, nil)
	if !slices.Equal(output(got.form), want) || got.form["status"] != "completed" {
		t.Errorf("got %s", got.text)
	}
	next := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "more", "previous_response_id": begun.form["id"]})
	if next.header.Get("Consort-Conversation") != id {
		t.Errorf("it continues %v", next.header)
	}
}

// TestResponseAfterAnotherCall: a response whose answer comes into the log after a canister of another call can be read.
func TestResponseAfterAnotherCall(t *testing.T) {
	store := history.NewMemory()
	part := canister.Extra{Metadata: canister.Fields{"io.github.consort-go/part": json.RawMessage("5")}}
	call := canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "a", CallID: "c1", Name: "local__do", Arguments: `{"what":"it"}`}
	other := canister.Invocation{Head: canister.Head{ID: "i2"}, Message: "a", CallID: "c2", Name: "local__do", Arguments: `{"what":"other"}`}
	log := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("call")},
		canister.Assistant{Head: canister.Head{ID: "a"}, Model: "test", Finish: canister.FinishInvocations}, call, other,
		canister.Wait{Head: canister.Head{ID: "w"}, For: canister.WaitApproval, Invocation: "i1", Deadline: time.Now().Add(time.Hour)},
		canister.Result{Head: canister.Head{ID: "r2"}, Invocation: "i2", Content: canister.Texts("did other")},
		canister.Answer{Head: canister.Head{ID: "x", Extra: part}, Wait: "w", Verdict: canister.VerdictAllow, By: "ann"},
		canister.Result{Head: canister.Head{ID: "r1"}, Invocation: "i1", Content: canister.Texts("did it")},
		canister.Assistant{Head: canister.Head{ID: "b"}, Model: "test", Finish: canister.FinishStop, Content: canister.Texts("both")},
	}
	owner := "owner-ann"
	if err := errors.Join(store.Append(t.Context(), "c", 0, log...), store.Describe(t.Context(), "c", history.Change{Owner: &owner})); err != nil {
		t.Fatal(err)
	}
	s := serveStore(t, store, nil, echo, nil, nil)
	got := s.want(http.StatusOK, "GET", "/v1/responses/resp_c_5", nil)
	if items := output(got.form); len(items) != 3 || items[2] != "message both" || got.form["status"] != "completed" {
		t.Errorf("got %s", got.text)
	}
	for _, id := range []string{"resp_c_1", "resp_c_4", "resp_c_6", "resp_c_8"} {
		s.want(http.StatusNotFound, "GET", "/v1/responses/"+id, nil)
	}
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "more", "previous_response_id": "resp_c_5"})
}

// TestBackground: a response in the background is read and cancelled.
func TestBackground(t *testing.T) {
	s := serve(t, echo, nil, nil)
	begun := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "block", "background": true})
	path := "/v1/responses/" + begun.form["id"].(string)
	if got := s.want(http.StatusOK, "GET", path, nil); got.form["status"] != "in_progress" || begun.form["status"] != "in_progress" || got.form["model"] != "consort" {
		t.Errorf("got %s", got.text)
	}
	if got := s.want(http.StatusOK, "POST", path+"/cancel", nil); got.form["status"] != "cancelled" {
		t.Errorf("got %s", got.text)
	}
}

// TestClientLeaves: the turn of a client that leaves is cancelled.
func TestClientLeaves(t *testing.T) {
	for path, body := range map[string]object{
		"/v1/chat/completions": {"messages": []object{user("block")}, "stream": true},
		"/v1/responses":        {"input": "block", "stream": true},
		"/agui":                {"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "block"}}},
	} {
		s := serve(t, echo, nil, nil)
		response := s.request("POST", path, body)
		id := response.Header.Get("Consort-Conversation")
		if err := readStream(response, func(e streamed) bool { return !strings.Contains(e.data, "one ") }); err != nil {
			t.Fatal(err)
		}
		if ended, _ := s.ended(id, 1); ended.Reason != converse.ReasonCancelled {
			t.Errorf("%s: it ended with %+v", path, ended)
		}
	}
}

// TestUnsupported: what the server cannot obey is refused by name.
func TestUnsupported(t *testing.T) {
	s := serve(t, echo, nil, nil)
	chat := func(name string, value any) object { return object{"messages": []object{user("x")}, name: value} }
	parts := func(one object) object {
		return object{"messages": []object{{"role": "user", "content": []object{one}}}}
	}
	response := func(name string, value any) object { return object{"input": "x", name: value} }
	for _, c := range []struct {
		path  string
		body  any
		param string
	}{
		{"chat/completions", chat("tools", []object{{"type": "function"}}), "tools[0]"},
		{"chat/completions", chat("tools", 1), "tools"},
		{"chat/completions", chat("tool_choice", "required"), "tool_choice"},
		{"chat/completions", chat("functions", []object{{"name": "f"}}), "functions"},
		{"chat/completions", chat("n", 2), "n"},
		{"chat/completions", chat("logprobs", true), "logprobs"},
		{"chat/completions", chat("response_format", object{"type": "json_object"}), "response_format"},
		{"chat/completions", chat("stop", "x"), "stop"},
		{"chat/completions", chat("surprise", 1), "surprise"},
		{"chat/completions", chat("stream", "yes"), "stream"},
		{"chat/completions", object{"messages": []object{}}, "messages"},
		{"chat/completions", object{"messages": []object{user("")}}, "messages"},
		{"chat/completions", object{"messages": []object{assistant("x")}}, "messages"},
		{"chat/completions", object{"messages": []object{{"role": "tool", "content": "x"}, user("x")}}, "messages[0].tool_call_id"},
		{"chat/completions", parts(object{"type": "file"}), "messages[0].content[0].type"},
		{"chat/completions", parts(object{"type": "image_url", "image_url": object{"url": "http://x"}}), "messages[0].content[0].image_url"},
		{"responses", response("tools", []object{{"type": "web_search"}}), "tools[0].type"},
		{"responses", response("tool_choice", object{"type": "function", "name": "f"}), "tool_choice"},
		{"responses", response("text", object{"format": object{"type": "json_schema"}}), "text"},
		{"responses", response("prompt", object{"id": "x"}), "prompt"},
		{"responses", object{"input": []object{{"type": "function_call_output"}}}, "input[0].call_id"},
		{"responses", object{"input": []object{}}, "input"},
		{"responses", response("conversation", 1), "conversation"},
		{"responses", object{"input": "x", "conversation": "a", "previous_response_id": "b"}, "conversation"},
		{"responses", object{"input": []object{{"type": "mcp_approval_response", "approval_request_id": "x", "approve": true}}}, "input"},
	} {
		a := s.want(http.StatusBadRequest, "POST", "/v1/"+c.path, c.body)
		if got := a.form["error"].(object)["param"]; got != c.param {
			t.Errorf("%s %v: %s", c.path, c.body, a.text)
		}
	}
	s.want(http.StatusNotFound, "POST", "/v1/responses", response("model", "gpt-9"))
	s.want(http.StatusNotFound, "GET", "/v1/models/gpt-9", nil)
	if got := s.want(http.StatusOK, "GET", "/v1/models", nil); got.form["data"].([]any)[0].(object)["id"] != "consort" {
		t.Errorf("got %s", got.text)
	}
	s.want(http.StatusOK, "GET", "/v1/models/consort", nil)
	const slashed = "meta-llama/Llama-3.3-70B"
	s = serve(t, echo, nil, func(o *httpapi.Options) { o.Models = func() []string { return []string{slashed} } })
	for _, name := range []string{slashed, "meta-llama%2FLlama-3.3-70B"} {
		response := s.request("GET", "/v1/models/"+name, nil) // a path of OpenAPI has no slash in a parameter
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"id":"`+slashed+`"`) {
			t.Errorf("%s: %s %s, %v", name, response.Status, text, err)
		}
	}
	s.want(http.StatusNotFound, "GET", "/v1/models/", nil)
	s.want(http.StatusBadRequest, "POST", "/v1/responses", "[]")
}
