// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// run runs a thread and returns the types of its events, the text, and the last event.
func (s *served) run(input object) (types []string, text string, last object) {
	s.t.Helper()
	input["runId"] = "r"
	for _, e := range s.stream("/agui", input) {
		last = object{}
		if err := json.Unmarshal([]byte(e.data), &last); err != nil {
			s.t.Fatal(err)
		}
		kind := last["type"].(string)
		if len(types) == 0 || types[len(types)-1] != kind {
			types = append(types, kind)
		}
		if kind == "TEXT_MESSAGE_CONTENT" {
			text += last["delta"].(string)
		}
	}
	return types, text, last
}

// TestRun: a run has the events of its turn, and the next one continues the thread.
func TestRun(t *testing.T) {
	s := serve(t, echo, nil, nil)
	messages := []object{{"id": "m1", "role": "user", "content": "call: it"}}
	types, text, last := s.run(object{
		"threadId": "t", "messages": messages, "state": object{"mine": 1}, "context": []object{}, "tools": []object{},
	})
	want := []string{"RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA",
		"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STATE_DELTA",
		"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_DELTA"}
	isLike := len(types) > len(want) && slices.Equal(types[:len(want)], want) && slices.Contains(types, "TOOL_CALL_RESULT")
	if !isLike || text != "I look. You said: did it" {
		t.Errorf("the events are %q, the text %q", types, text)
	}
	if outcome := last["outcome"].(object)["type"]; outcome != "success" || last["threadId"] != "t" {
		t.Errorf("it ended with %v", last)
	}
	messages = append(messages, object{"id": "a", "role": "assistant", "content": text}, object{"id": "m2", "role": "user", "content": "more"})
	for range 2 { // the same message again has no further effect
		if _, text, _ := s.run(object{"threadId": "t", "messages": messages}); text != "You said: more" {
			t.Errorf("the text is %q", text)
		}
	}
	if _, text, _ = s.as("bob").run(object{"threadId": "t", "messages": messages[2:]}); text != "You said: more" {
		t.Errorf("the text is %q", text)
	}
	for info := range s.store.List(t.Context(), history.Filter{Owner: "owner-bob"}) {
		if info.Length != 2 {
			t.Errorf("the thread of another has %d canisters", info.Length)
		}
	}
}

// TestInterrupt: an approval is an interrupt, and the next run answers it.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		entry object
		last  string
	}{
		{object{"status": "resolved", "payload": object{"approved": true}}, "You said: did it"},
		{object{"status": "resolved", "payload": object{"approved": true, "arguments": object{"what": "other"}}}, "did other"},
		{object{"status": "resolved", "payload": object{"approved": false, "reason": "no"}}, ""},
		{object{"status": "cancelled"}, ""},
	} {
		s := serve(t, echo, ask, nil)
		_, _, last := s.run(object{"threadId": "t", "messages": []object{{"id": "m1", "role": "user", "content": "call: it"}}})
		outcome := last["outcome"].(object)
		if outcome["type"] != "interrupt" {
			t.Fatalf("it ended with %v", last)
		}
		interrupt := outcome["interrupts"].([]any)[0].(object)
		s.want(http.StatusBadRequest, "POST", "/agui", object{"threadId": "t", "runId": "r", "resume": []object{{"interruptId": "x"}}})
		unclear := []object{{"interruptId": interrupt["id"], "status": "resolved"}}
		s.want(http.StatusBadRequest, "POST", "/agui", object{"threadId": "t", "runId": "r", "resume": unclear})
		c.entry["interruptId"] = interrupt["id"]
		_, text, last := s.run(object{"threadId": "t", "messages": []object{}, "resume": []object{c.entry}})
		if last["type"] != "RUN_FINISHED" || !strings.HasSuffix(text, c.last) || text == "" {
			t.Errorf("%v: %q, %v", c.entry, text, last)
		}
		var log []canister.Canister
		for info := range s.store.List(t.Context(), history.Filter{}) {
			log, _ = history.From(t.Context(), s.store, info.ID, 0)
		}
		if !slices.ContainsFunc(log, func(c canister.Canister) bool { return c.Kind() == canister.KindAnswer }) {
			t.Error("the log has no answer")
		}
	}
}

// TestHostileRuns: a run without what it needs is refused.
func TestHostileRuns(t *testing.T) {
	s := serve(t, echo, nil, nil)
	for _, c := range []struct {
		param string
		input object
	}{
		{"threadId", object{"runId": "r", "messages": []object{}}},
		{"runId", object{"threadId": "t", "messages": []object{}}},
		{"messages", object{"threadId": "t", "runId": "r", "messages": []object{}}},
		{"tools[0]", object{"threadId": "t", "runId": "r", "messages": []object{{"role": "user", "content": "x"}}, "tools": []object{{"name": "x y"}}}},
		{"messages", object{"threadId": "t", "runId": "r", "messages": 1}},
		{"messages.role", object{"threadId": "t", "runId": "r", "messages": []object{{"role": 1}}}},
		{"messages.toolCallId", object{"threadId": "t", "runId": "r", "messages": []object{{"toolCallId": 1}}}},
		{"resume", object{"threadId": "t", "runId": "r", "resume": []object{{"interruptId": "x"}}}},
	} {
		refused := s.want(http.StatusBadRequest, "POST", "/agui", c.input).form["error"].(object)
		if refused["param"] != c.param {
			t.Errorf("%v: %v", c.input, refused)
		}
	}
}

// forgetful is a store that cannot record owners until it is repaired.
type forgetful struct {
	history.Store
	isRepaired bool
}

func (f *forgetful) Describe(ctx context.Context, id string, change history.Change) error {
	if !f.isRepaired {
		return errors.New("away")
	}
	return f.Store.Describe(ctx, id, change)
}

// TestThreadWithoutOwner: a thread whose owner was not recorded, as after the death of a process,
// belongs to the one who began it with the next request. A thread of another owner does not.
func TestThreadWithoutOwner(t *testing.T) {
	store := &forgetful{Store: history.NewMemory()}
	s := serveStore(t, store, nil, echo, nil, nil)
	body := object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m1", "role": "user", "content": "hello"}}}
	s.want(http.StatusServiceUnavailable, "POST", "/agui", body)
	store.isRepaired = true
	if _, text, _ := s.as("bob").run(object{"threadId": "t", "messages": body["messages"]}); text != "You said: hello" {
		t.Errorf("another gets %q", text)
	}
	for range 2 {
		if _, text, last := s.run(object{"threadId": "t", "messages": body["messages"]}); text != "You said: hello" {
			t.Errorf("the text is %q, the end %v", text, last)
		}
	}
	for _, owner := range []string{"owner-ann", "owner-bob"} {
		n := 0
		for info, err := range store.List(t.Context(), history.Filter{Owner: owner}) {
			if n++; err != nil || info.Length != 2 {
				t.Errorf("%s: %+v, %v", owner, info, err)
			}
		}
		if n != 1 {
			t.Errorf("%s has %d conversations", owner, n)
		}
	}
	for info := range store.List(t.Context(), history.Filter{Owner: "owner-ann"}) {
		eve := "owner-eve"
		if err := store.Describe(t.Context(), info.ID, history.Change{Owner: &eve}); err != nil {
			t.Fatal(err)
		}
	}
	s.want(http.StatusNotFound, "POST", "/agui", body)
}

// thread is the state of a client of AG-UI, as AG-UI's own client applies events to it.
type thread struct {
	texts     map[string]string // of the messages, by ID
	arguments map[string]string // of the calls, by ID
	results   []string          // IDs of calls
	last      string            // the type of the last event
}

func (s *served) apply(th *thread, input object) {
	s.t.Helper()
	for _, e := range s.stream("/agui", input) {
		var event struct{ Type, MessageID, ToolCallID, Delta string }
		if err := json.Unmarshal([]byte(e.data), &event); err != nil && !strings.HasPrefix(event.Type, "STATE") {
			s.t.Fatal(err)
		}
		switch th.last = event.Type; event.Type {
		case "TEXT_MESSAGE_CONTENT":
			th.texts[event.MessageID] += event.Delta
		case "TOOL_CALL_ARGS":
			th.arguments[event.ToolCallID] += event.Delta
		case "TOOL_CALL_RESULT":
			th.results = append(th.results, event.ToolCallID)
		}
	}
}

// TestRunsOfOneMessage: a run that sends a failed message again does not write into the messages and
// calls that the client has from the run before.
func TestRunsOfOneMessage(t *testing.T) {
	isWell := make(chan struct{}, 1)
	fails := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if lastText(request) == "did it" && len(isWell) == 0 {
			yield(converse.Delta{Text: "You "}, nil)
			yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
			return
		}
		echo(ctx, request, yield)
	}
	s := serve(t, fails, nil, nil)
	client := &thread{texts: map[string]string{}, arguments: map[string]string{}}
	message := object{"id": "m", "role": "user", "content": "call: it"}
	s.apply(client, object{"threadId": "t", "runId": "r1", "messages": []object{message}})
	if client.last != "RUN_ERROR" || len(client.results) != 1 {
		t.Fatalf("the first run ended with %+v", client)
	}
	isWell <- struct{}{}
	call := client.results[0]
	s.apply(client, object{"threadId": "t", "runId": "r2", "messages": []object{
		message, {"id": "a", "role": "assistant", "toolCalls": []object{{"id": call}}},
		{"id": "b", "role": "tool", "toolCallId": call, "content": "did it"}, message,
	}})
	answers := 0
	for id, text := range client.texts { // a run that comes late does not get the pieces before
		switch text {
		case "I look. ", "You ":
		case "You said: did it":
			answers++
		default:
			t.Errorf("message %s is %q", id, text)
		}
	}
	if client.last != "RUN_FINISHED" || answers != 1 {
		t.Errorf("the client has %+v", client)
	}
	if client.arguments[call] != `{"what":"it"}` || len(client.results) != 1 {
		t.Errorf("the client has the calls %v with the results %q", client.arguments, client.results)
	}
}

// TestRunsThatBeginAtOnce: two runs that begin a thread at once, as pages that run their effects twice
// send them, begin it once.
func TestRunsThatBeginAtOnce(t *testing.T) {
	store := &changing{Store: history.NewMemory()}
	s := serveStore(t, store, nil, echo, nil, nil)
	messages := []object{
		{"id": "s", "role": "system", "content": "Be short."}, {"id": "m1", "role": "user", "content": "old"},
		{"id": "a", "role": "assistant", "content": "answer"}, {"id": "m2", "role": "user", "content": "hello"},
	}
	for range 2 {
		if _, text, last := s.run(object{"threadId": "t", "messages": messages}); text != "You said: hello" || last["type"] != "RUN_FINISHED" {
			t.Errorf("the text is %q, the end %v", text, last)
		}
		store.isBeginning.Store(true)
	}
	for id, length := range s.lengths() {
		if length != 5 {
			t.Errorf("the log is %v", s.wholeLog(id))
		}
	}
}
