// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// uses calls the tools that a message names after "use ", and then repeats their results.
func uses(_ context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
	last := request.History[len(request.History)-1]
	names, isUse := strings.CutPrefix(lastText(request), "use ")
	if last.Kind() == canister.KindResult {
		var texts []string
		for _, c := range request.History[slices.IndexFunc(request.History, isLastUser(request)):] {
			if result, is := c.(canister.Result); is {
				texts = append(texts, result.Code+canister.TextOf(result.Content))
			}
		}
		say(request, strings.Join(texts, ", "), yield)
		return
	}
	if !isUse {
		offered := []string{}
		for _, d := range request.Tools.Definitions {
			offered = append(offered, d.Name)
		}
		say(request, "You said: "+lastText(request)+" "+strings.Join(offered, " "), yield)
		return
	}
	message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishInvocations, Model: "test"}
	reply := converse.Reply{Message: message}
	for i, name := range strings.Fields(names) {
		reply.Invocations = append(reply.Invocations, canister.Invocation{
			Head: canister.Head{ID: request.NewID()}, Message: message.ID, CallID: fmt.Sprint("c", i), Name: name,
			Arguments: fmt.Sprintf(`{"what":"%d"}`, i),
		})
	}
	yield(reply, nil)
}

func isLastUser(request *converse.Request) func(canister.Canister) bool {
	id := ""
	for _, c := range request.History {
		if c.Kind() == canister.KindUser {
			id = c.Header().ID
		}
	}
	return func(c canister.Canister) bool { return c.Header().ID == id }
}

var whatSchema = object{"type": "object", "properties": object{"what": object{"type": "string"}}}

// chatTools are tools in the form of Chat Completions.
func chatTools(names ...string) (all []object) {
	for _, name := range names {
		form := object{"name": name, "description": "Of the page.", "parameters": whatSchema, "strict": true}
		all = append(all, object{"type": "function", "function": form})
	}
	return all
}

// flatTools are tools in the form of Responses and of AG-UI.
func flatTools(names ...string) (all []object) {
	for _, name := range names {
		all = append(all, object{"type": "function", "name": name, "description": "Of the page.", "parameters": whatSchema})
	}
	return all
}

// chatCalls returns the message of a chat completion, and the IDs of its calls by name.
func chatCalls(t *testing.T, a answer) (message object, ids map[string]string) {
	t.Helper()
	choice := a.form["choices"].([]any)[0].(object)
	message, ids = choice["message"].(object), map[string]string{}
	calls, _ := message["tool_calls"].([]any)
	for _, one := range calls {
		call := one.(object)
		ids[call["function"].(object)["name"].(string)] = call["id"].(string)
	}
	if (choice["finish_reason"] == "tool_calls") != (len(calls) > 0) {
		t.Errorf("it ended with %v and has %d calls", choice["finish_reason"], len(calls))
	}
	return message, ids
}

func toolMessage(id, text string) object {
	return object{"role": "tool", "tool_call_id": id, "content": text}
}

// wholeLog requires that each call of a conversation has one result, and returns its log.
func (s *served) wholeLog(id string) []canister.Canister {
	s.t.Helper()
	log, err := history.From(s.t.Context(), s.store, id, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, problem := range sequence.Check(log) {
		if problem.Rule != sequence.RuleOpen {
			s.t.Errorf("the log: %v", problem)
		}
	}
	return log
}

// TestChatTools: a chat gets the calls of its tools, while the server makes its own, and goes on
// with the results at another process. The same request again has no further effect.
func TestChatTools(t *testing.T) {
	store := history.NewMemory()
	s := serveStore(t, store, nil, uses, nil, nil)
	messages := []object{user("use pick local__do show")}
	body := func(messages []object) object {
		return object{"messages": messages, "tools": chatTools("pick", "show"), "tool_choice": "auto"}
	}
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", body(messages))
	message, ids := chatCalls(t, first)
	id := first.header.Get("Consort-Conversation")
	if len(ids) != 2 || message["content"] != nil || len(ofKind[canister.Result](s, id)) != 1 {
		t.Fatalf("got %s", first.text)
	}
	messages = append(messages, message, toolMessage(ids["show"], "shown"), toolMessage(ids["pick"], "picked"))
	other := serveStore(t, store, nil, uses, nil, nil)
	for range 2 {
		second := other.want(http.StatusOK, "POST", "/v1/chat/completions", body(messages))
		if chatText(second) != "picked, did 1, shown" || second.header.Get("Consort-Conversation") != id {
			t.Fatalf("got %s", second.text)
		}
	}
	third := other.want(http.StatusOK, "POST", "/v1/chat/completions", body(append(messages, assistant("picked, did 1, shown"), user("more"))))
	if chatText(third) != "You said: more local__do pick show" || third.header.Get("Consort-Conversation") != id {
		t.Errorf("got %s", third.text)
	}
	if log := s.wholeLog(id); len(ofKind[canister.Answer](s, id)) != 2 || len(ofKind[canister.Intent](s, id)) != 1 {
		t.Errorf("the log is %v", log)
	}
	moved := append(slices.Clone(messages[:2]), toolMessage(ids["show"], "other"), toolMessage(ids["pick"], "picked"))
	s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", body(moved)) // the conversation has gone on
	past := s.want(http.StatusOK, "POST", "/v1/chat/completions", body(append(moved, user("else"))))
	if log := s.wholeLog(past.header.Get("Consort-Conversation")); len(log) != 8 || !strings.HasPrefix(chatText(past), "You said: else") {
		t.Errorf("the edited chat is %v", log)
	}
}

// ofKind returns the canisters of a kind in a log.
func ofKind[C canister.Canister](s *served, id string) (all []C) {
	for _, c := range s.wholeLog(id) {
		if one, is := c.(C); is {
			all = append(all, one)
		}
	}
	return all
}

// TestChatToolsStreamed: the chunks have the calls, and a message without their results ends them.
func TestChatToolsStreamed(t *testing.T) {
	s := serve(t, uses, nil, nil)
	messages := []object{user("use pick show")}
	events := s.stream("/v1/chat/completions", object{"messages": messages, "tools": chatTools("pick", "show"), "stream": true})
	var calls []object
	finish := ""
	for _, e := range events[:len(events)-1] {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Calls []object `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			calls, finish = append(calls, choice.Delta.Calls...), choice.Finish
		}
	}
	isLike := len(calls) == 2 && calls[1]["index"] == 1.0 && calls[0]["function"].(object)["arguments"] == `{"what":"0"}`
	if !isLike || finish != "tool_calls" || calls[0]["function"].(object)["name"] != "pick" {
		t.Fatalf("the calls are %v, it ended with %q", calls, finish)
	}
	picked := toolMessage(calls[0]["id"].(string), "picked")
	messages = append(messages, object{"role": "assistant", "tool_calls": calls}, picked, user("leave it"))
	without := object{"messages": messages, "tools": chatTools("show"), "tool_choice": "none"}
	next := s.want(http.StatusOK, "POST", "/v1/chat/completions", without)
	if chatText(next) != "You said: leave it local__do" {
		t.Errorf("got %s", next.text)
	}
	got := ofKind[canister.Result](s, next.header.Get("Consort-Conversation"))
	if len(got) != 2 || canister.TextOf(got[0].Content) != "picked" || got[1].Code != "CANCELED" {
		t.Errorf("the results are %v", got)
	}
}

// TestToolsAndApproval: a call of the client and an approval wait at once, and neither answers the
// other.
func TestToolsAndApproval(t *testing.T) {
	s := serve(t, uses, ask, nil)
	tools := chatTools("pick")
	messages := []object{user("use local__do pick")}
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": tools})
	message, ids := chatCalls(t, first)
	id := first.header.Get("Consort-Conversation")
	approval := ""
	for _, wait := range ofKind[canister.Wait](s, id) {
		if wait.For == canister.WaitApproval {
			approval = wait.Invocation
		}
	}
	messages = append(messages, message)
	pick := ids["pick"]
	hostile := []string{approval, "call_" + id + "_" + approval, pick + "x", "", "call__", "call_" + id, strings.Repeat("_", 99)}
	for _, foreign := range hostile {
		request := object{"messages": append(messages, toolMessage(foreign, "yes")), "tools": tools}
		s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", request)
	}
	s.as("bob").want(http.StatusBadRequest, "POST", "/v1/chat/completions", object{"messages": append(messages, toolMessage(pick, "yes"))})
	twice := append(messages, toolMessage(pick, "a"), toolMessage(pick, "b"))
	s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", object{"messages": twice})
	large := toolMessage(pick, strings.Repeat("x", 600<<10))
	s.want(http.StatusRequestEntityTooLarge, "POST", "/v1/chat/completions", object{"messages": append(messages, large)})
	if len(ofKind[canister.Answer](s, id)) != 0 {
		t.Fatal("a hostile result is an answer")
	}
	waits := s.want(http.StatusOK, "GET", "/api/conversations/"+id+"/waits", nil).form["waits"].([]any)
	if len(waits) != 2 || waits[0].(object)["client"] == waits[1].(object)["client"] {
		t.Errorf("the waits are %v", waits)
	}
	messages = append(messages, toolMessage(pick, "picked"))
	for _, early := range []object{user("/allow"), user("well")} { // the approval is not in the chat yet
		a := s.want(http.StatusConflict, "POST", "/v1/chat/completions", object{"messages": append(messages, early), "tools": tools})
		if strings.Contains(a.text, "/allow") || !strings.Contains(a.text, "results") || len(ofKind[canister.Answer](s, id)) != 0 {
			t.Errorf("%v: %s", early, a.text)
		}
	}
	second := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": tools})
	if !strings.Contains(chatText(second), "local__do") || !strings.Contains(chatText(second), "/allow") {
		t.Fatalf("got %s", second.text)
	}
	messages = append(messages, assistant(chatText(second)), user("/allow"))
	third := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages, "tools": tools})
	if chatText(third) != "did 0, picked" || third.header.Get("Consort-Conversation") != id {
		t.Errorf("got %s", third.text)
	}
	s.wholeLog(id)
}

// functionCalls returns the call_ids of a response by name.
func functionCalls(response object) map[string]string {
	ids := map[string]string{}
	for _, one := range response["output"].([]any) {
		if item := one.(object); item["type"] == "function_call" {
			ids[item["name"].(string)] = item["call_id"].(string)
		}
	}
	return ids
}

func callOutput(id any, output any) object {
	return object{"type": "function_call_output", "call_id": id, "output": output}
}

// TestResponseTools: the calls of a client's tools are items, whole and streamed, and the outputs
// go on with the response.
func TestResponseTools(t *testing.T) {
	s := serve(t, uses, nil, nil)
	tools := flatTools("pick", "show")
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick local__do show", "tools": tools}).form
	ids := functionCalls(first)
	kinds := output(first)
	slices.Sort(kinds)
	want := []string{"function_call", "function_call", `mcp_call local.do {"what":"1"} completed did 1`}
	if !slices.Equal(kinds, want) || len(ids) != 2 || first["status"] != "completed" {
		t.Fatalf("got %v", first)
	}
	next := object{"previous_response_id": first["id"], "tools": tools, "input": []object{
		callOutput(ids["show"], []object{{"type": "input_text", "text": "shown"}}), callOutput(ids["pick"], "picked"),
	}}
	second := s.want(http.StatusOK, "POST", "/v1/responses", next).form
	if got := output(second); !slices.Equal(got, []string{"message picked, did 1, shown"}) {
		t.Fatalf("got %q", got)
	}
	for _, response := range []object{first, second} {
		stored := s.want(http.StatusOK, "GET", "/v1/responses/"+response["id"].(string), nil).form
		if !slices.Equal(output(stored), output(response)) {
			t.Errorf("stored %q, was %q", output(stored), output(response))
		}
	}
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "more", "previous_response_id": second["id"]})
	s.want(http.StatusBadRequest, "POST", "/v1/responses", next) // the conversation has gone on

	var last object
	for _, e := range s.stream("/v1/responses", object{"input": "use pick", "tools": tools, "stream": true}) {
		last = object{}
		if err := json.Unmarshal([]byte(e.data), &last); err != nil {
			t.Fatal(err)
		}
	}
	streamed := last["response"].(object)
	call := callOutput(functionCalls(streamed)["pick"], "picked")
	list := []object{user("use pick"), {"type": "function_call", "call_id": call["call_id"], "name": "pick", "arguments": "{}"}, call}
	// as clients without previous_response_id do
	whole := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": list, "tools": tools}).form
	isSame := whole["conversation"].(object)["id"] == streamed["conversation"].(object)["id"]
	if got := output(whole); !slices.Equal(got, []string{"message picked"}) || !isSame {
		t.Errorf("got %v", whole)
	}
	past := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": append(list, user("else")), "tools": tools}).form
	if got := output(past); !slices.Equal(got, []string{"message You said: else local__do pick show"}) {
		t.Errorf("got %v", past)
	}
	s.wholeLog(past["conversation"].(object)["id"].(string))
}

// TestRepeatedResultAndMessage: a request with a result and a message that is sent again has no
// further effect, and a result that is sent again with another message does not hold it up.
func TestRepeatedResultAndMessage(t *testing.T) {
	s := serve(t, uses, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick", "tools": flatTools("pick")}).form
	result := callOutput(functionCalls(first)["pick"], "picked")
	send := func(previous any, items ...object) object {
		t.Helper()
		return s.want(http.StatusOK, "POST", "/v1/responses", object{"previous_response_id": previous, "input": items}).form
	}
	second := send(first["id"], result, user("more"))
	again := send(first["id"], result, user("more"))
	got := output(again)
	if again["id"] != second["id"] || !slices.Equal(got, output(second)) || got[0] != "message You said: more local__do" {
		t.Errorf("got %v, and then %v", second, again)
	}
	third := send(second["id"], result, user("more")) // the same words as a new message
	id := first["conversation"].(object)["id"].(string)
	if said := ofKind[canister.User](s, id); len(said) != 3 || third["id"] == second["id"] || len(ofKind[canister.Answer](s, id)) != 1 {
		t.Errorf("got %v; the messages are %v", third, said)
	}
	fourth := send(first["id"], result, user("else"))
	if got := output(fourth); !slices.Equal(got, []string{"message You said: else local__do"}) {
		t.Errorf("got %v", fourth)
	}
	other := callOutput(result["call_id"], "other")
	s.want(http.StatusBadRequest, "POST", "/v1/responses", object{"previous_response_id": first["id"], "input": []object{other, user("more")}})
}

// TestResultsOfWhichOneIsNew: a request whose first result the log has already continues the turn
// that waits for another of its results.
func TestResultsOfWhichOneIsNew(t *testing.T) {
	s := serve(t, uses, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use pick show", "tools": flatTools("pick", "show")}).form
	calls := functionCalls(first)
	picked, shown := callOutput(calls["pick"], "picked"), callOutput(calls["show"], "shown")
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": []object{picked}})
	call := func(name string) object {
		return object{"type": "function_call", "call_id": calls[name], "name": name, "arguments": "{}"}
	}
	list := []object{user("use pick show"), call("pick"), call("show"), picked, shown, user("more")}
	last := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": list}).form
	id := first["conversation"].(object)["id"].(string)
	if last["conversation"].(object)["id"] != id || len(ofKind[canister.Answer](s, id)) != 2 || len(ofKind[canister.User](s, id)) != 2 {
		t.Errorf("got %v; the log is %v", last, s.wholeLog(id))
	}
}

// TestResponseToolsAndApproval: a response has the calls of the client and the approvals, and one
// request answers both.
func TestResponseToolsAndApproval(t *testing.T) {
	s := serve(t, uses, ask, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "use local__do pick", "tools": flatTools("pick")}).form
	approval := ""
	for _, one := range first["output"].([]any) {
		if item := one.(object); item["type"] == "mcp_approval_request" {
			approval = item["id"].(string)
		}
	}
	result := callOutput(functionCalls(first)["pick"], "picked")
	reply := func(items ...object) object { return object{"previous_response_id": first["id"], "input": items} }
	s.want(http.StatusBadRequest, "POST", "/v1/responses", reply(callOutput(approval, "yes")))
	s.as("bob").want(http.StatusBadRequest, "POST", "/v1/responses", object{"input": []object{result}})
	second := s.want(http.StatusOK, "POST", "/v1/responses", reply(result)).form
	if got := output(second); !slices.Equal(got, []string{"mcp_approval_request"}) {
		t.Fatalf("got %q", got)
	}
	both := reply(result, object{"type": "mcp_approval_response", "approval_request_id": approval, "approve": true})
	third := s.want(http.StatusOK, "POST", "/v1/responses", both).form
	if got := output(third); !slices.Equal(got, []string{`mcp_call local.do {"what":"0"} completed did 0`, "message did 0, picked"}) {
		t.Errorf("got %q", got)
	}
}

// TestRunTools: a run ends with the calls of the front end, and the next one brings results. A
// result that comes too late changes nothing.
func TestRunTools(t *testing.T) {
	s := serve(t, uses, ask, nil)
	input := func(messages ...object) object {
		return object{"threadId": "t", "messages": messages, "tools": flatTools("pick", "show")}
	}
	question := object{"id": "m1", "role": "user", "content": "use pick local__do show"}
	types, _, last := s.run(input(question))
	outcome := last["outcome"].(object)
	if outcome["type"] != "interrupt" || len(outcome["interrupts"].([]any)) != 1 || !slices.Contains(types, "TOOL_CALL_ARGS") {
		t.Fatalf("it ended with %v", last)
	}
	id, ids := "", map[string]string{}
	for info := range s.store.List(t.Context(), history.Filter{}) {
		id = info.ID
	}
	for _, call := range ofKind[canister.Invocation](s, id) {
		ids[call.Name] = call.ID
	}
	result := func(name, text string) object {
		return object{"id": "r-" + name, "role": "tool", "toolCallId": ids[name], "content": text}
	}
	calls := []object{{"id": ids["pick"]}, {"id": ids["show"]}, {"id": ids["local__do"]}}
	said := object{"id": "a1", "role": "assistant", "toolCalls": calls}
	run := func(name string) object {
		return object{"threadId": "t", "runId": "r", "messages": []object{said, result(name, "yes")}}
	}
	s.want(http.StatusBadRequest, "POST", "/agui", run("local__do"))
	s.as("bob").want(http.StatusBadRequest, "POST", "/agui", run("pick"))
	types, _, last = s.run(input(question, said, result("pick", "picked")))
	isAgain := slices.Contains(types, "TOOL_CALL_RESULT") || slices.Contains(types, "TOOL_CALL_START")
	if last["outcome"].(object)["type"] != "interrupt" || isAgain {
		t.Fatalf("the events are %q, it ended with %v", types, last)
	}
	failed := result("show", "")
	failed["error"] = "no light"
	next := input(question, said, result("pick", "picked"), failed)
	interrupt := outcome["interrupts"].([]any)[0].(object)["id"]
	next["resume"] = []object{{"interruptId": interrupt, "status": "resolved", "payload": object{"approved": true}}}
	types, text, last := s.run(next)
	if text != "picked, did 1, EXECUTION_FAILEDno light" || last["outcome"].(object)["type"] != "success" {
		t.Fatalf("the events are %q, the text %q, it ended with %v", types, text, last)
	}
	late := input(question, said, result("pick", "other"), object{"id": "m2", "role": "user", "content": "more"})
	if _, text, _ = s.run(late); text != "You said: more local__do pick show" {
		t.Errorf("the text is %q", text)
	}
	if len(ofKind[canister.Answer](s, id)) != 3 {
		t.Error("the late result is an answer")
	}
}

// TestRunGoesOn: a message without the results of the front end's calls ends them.
func TestRunGoesOn(t *testing.T) {
	s := serve(t, uses, nil, nil)
	tools := flatTools("pick")
	first := []object{{"id": "m1", "role": "user", "content": "use pick"}}
	_, _, last := s.run(object{"threadId": "t", "messages": first, "tools": tools})
	if last["outcome"].(object)["type"] != "success" {
		t.Fatalf("it ended with %v", last)
	}
	said := object{"id": "a1", "role": "assistant", "toolCalls": []object{{"id": "x"}}}
	first = append(first, said, object{"id": "m2", "role": "user", "content": "well"})
	if _, text, _ := s.run(object{"threadId": "t", "messages": first}); text != "You said: well local__do" {
		t.Errorf("the text is %q", text)
	}
}

// TestRefusedTools: tools that cannot be offered are refused by name.
func TestRefusedTools(t *testing.T) {
	s := serve(t, uses, nil, nil)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint("tool-", i)
	}
	odd := flatTools("odd")
	odd[0]["parameters"] = object{"type": "string"}
	for _, c := range []struct {
		tools       []object
		param, text string
	}{
		{flatTools("pick", "local__do"), "tools[1]", "local__do"},
		{flatTools("pick", "pick"), "tools[1]", "pick"},
		{flatTools("my tool"), "tools[0]", "my tool"},
		{flatTools(many...), "tools[64]", "at most 64"},
		{odd, "tools[0]", "odd"},
	} {
		var nested []object
		for _, tool := range c.tools {
			nested = append(nested, object{"type": "function", "function": tool})
		}
		for path, body := range map[string]object{
			"/v1/chat/completions": {"messages": []object{user("hello")}, "tools": nested},
			"/v1/responses":        {"input": "hello", "tools": c.tools},
			"/agui":                {"threadId": "t", "runId": "r", "messages": []object{{"role": "user", "content": "hello"}}, "tools": c.tools},
		} {
			refused := s.want(http.StatusBadRequest, "POST", path, body).form["error"].(object)
			if refused["param"] != c.param || !strings.Contains(refused["message"].(string), c.text) {
				t.Errorf("%s: %v", path, refused)
			}
		}
	}
}

// TestLargeAnswers: an answer is bounded in the form in which it is stored, and one that is too large says so.
func TestLargeAnswers(t *testing.T) {
	s := serve(t, uses, ask, nil)
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("use local__do pick")}, "tools": chatTools("pick")})
	id := first.header.Get("Consort-Conversation")
	path := map[canister.WaitFor]string{}
	var line []byte // of an answer with a text of one byte
	for _, wait := range ofKind[canister.Wait](s, id) {
		path[wait.For] = "/api/conversations/" + id + "/waits/" + wait.ID
		if wait.For == canister.WaitElicitation {
			line, _ = canister.Marshal(canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAccept, Content: []canister.Content{canister.Text("x")}})
		}
	}
	result := func(size int) object {
		return object{"verdict": "accept", "content": []object{{"type": "text", "text": strings.Repeat("x", size)}}}
	}
	for _, size := range []int{600 << 10, 1200 << 10} {
		if a := s.want(http.StatusRequestEntityTooLarge, "POST", path[canister.WaitElicitation], result(size)); !strings.Contains(a.text, "too_large") {
			t.Errorf("%d: %s", size, a.text)
		}
	}
	s.want(http.StatusRequestEntityTooLarge, "POST", path[canister.WaitApproval], object{"verdict": "deny", "reason": strings.Repeat("\x01", 400<<10)})
	if answers := ofKind[canister.Answer](s, id); len(answers) != 0 {
		t.Fatalf("%d answers", len(answers))
	}
	most := result(512<<10 - len(line) + 1)
	most["id"] = strings.Repeat("i", 128) // does not count, as with the results of clients' tools
	s.want(http.StatusNoContent, "POST", path[canister.WaitElicitation], most)
	s.want(http.StatusNoContent, "POST", path[canister.WaitApproval], object{"verdict": "deny", "reason": strings.Repeat("x", 500<<10)})
}
