// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// begin sends a request whose client leaves when ctx ends, and returns what receives its response.
func (s *served) begin(ctx context.Context, path string, body object, headers ...string) *recorded {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, "POST", "http://localhost"+path, strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(who, s.owner)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	w := &recorded{header: http.Header{}, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		s.server.Config.Handler.ServeHTTP(w, request)
	}()
	return w
}

// signals returns a model that sends to a channel when it is asked.
func signals(m model) (model, chan struct{}) {
	asked := make(chan struct{}, 16)
	return func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		asked <- struct{}{}
		m(ctx, request, yield)
	}, asked
}

// TestVerbosity: OpenAI's Agents SDK sends the verbosity to models whose names begin with gpt-5.
func TestVerbosity(t *testing.T) {
	s := serve(t, echo, nil, nil)
	for _, text := range []object{{"verbosity": "low"}, {"verbosity": "low", "format": object{"type": "text"}}} {
		a := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello", "text": text, "reasoning": object{"effort": "none"}})
		if ignored := strings.Join(a.header.Values("Consort-Ignored"), ", "); ignored != "reasoning, text.verbosity" {
			t.Errorf("ignored are %q", ignored)
		}
	}
	other := object{"verbosity": "low", "format": object{"type": "json_object"}}
	s.want(http.StatusBadRequest, "POST", "/v1/responses", object{"input": "hello", "text": other})
}

// TestReferences: the AI SDK of Vercel sends references to items of earlier responses instead of the messages of the
// model and the calls of the server's tools.
func TestReferences(t *testing.T) {
	s := serve(t, recites, nil, func(o *httpapi.Options) { o.MaxBody = 2000 })
	refer := func(id any) object { return object{"type": "item_reference", "id": id} }
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "one"})
	said := refer(first.form["output"].([]any)[0].(object)["id"])
	input := []any{user("one"), said, user("two")}
	second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": input})
	if got := strings.Join(output(second.form), " "); got != "message one|two" {
		t.Errorf("the answer is %q", got)
	}
	id := second.header.Get("Consort-Conversation")
	if got := ofKind[canister.Assistant](s, id); len(got) != 2 || canister.TextOf(got[0].Content) != "one" {
		t.Errorf("the model has said %v", got)
	}
	continued := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": input[1:], "previous_response_id": first.form["id"]})
	if got := strings.Join(output(continued.form), " "); got != "message one|two" {
		t.Errorf("with the previous response, the answer is %q", got)
	}
	s.as("bob").want(http.StatusNotFound, "POST", "/v1/responses", object{"input": input})
	for _, wrong := range []string{"msg_x", "", "msg_" + id + "_0_9", "msg_" + id + "_1_0", "rs_1"} {
		s.want(http.StatusNotFound, "POST", "/v1/responses", object{"input": []any{user("one"), refer(wrong), user("two")}})
	}
	long := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": strings.Repeat("x", 900)})
	said = refer(long.form["output"].([]any)[0].(object)["id"])
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": []any{said, user("two")}})
	s.want(http.StatusRequestEntityTooLarge, "POST", "/v1/responses", object{"input": []any{said, said, said, user("two")}})
}

// TestReferenceToACall: a reference to the call of a tool stands for the call and its result.
func TestReferenceToACall(t *testing.T) {
	s := serve(t, echo, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"})
	input := []any{user("call: it")}
	for _, item := range first.form["output"].([]any) {
		input = append(input, object{"type": "item_reference", "id": item.(object)["id"]})
	}
	second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": append(input, user("more"))})
	results := ofKind[canister.Result](s, second.header.Get("Consort-Conversation"))
	if len(results) != 1 || canister.TextOf(results[0].Content) != "did it" {
		t.Errorf("the results are %v", results)
	}
	tools := object{"input": "use pick", "tools": flatTools("pick")}
	s = serve(t, uses, nil, nil)
	item := s.want(http.StatusOK, "POST", "/v1/responses", tools).form["output"].([]any)[0].(object)
	input = []any{user("use pick"), object{"type": "item_reference", "id": item["id"]}, callOutput(item["call_id"], "picked")}
	if got := strings.Join(output(s.want(http.StatusOK, "POST", "/v1/responses", object{"input": input}).form), " "); got != "message picked" {
		t.Errorf("after the call of the client, the output is %q", got)
	}
}

// TestApprovalByItsID: an approval needs no previous response, because the ID of its request names the conversation. In
// later requests, which have it again, it belongs to the past.
func TestApprovalByItsID(t *testing.T) {
	s := serve(t, echo, ask, nil)
	refer := func(id any) object { return object{"type": "item_reference", "id": id} }
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"}).form
	request := first["output"].([]any)[1].(object)["id"]
	allow := object{"type": "mcp_approval_response", "approval_request_id": request, "approve": true}
	input := []any{user("call: it"), refer(request), allow}
	s.as("bob").want(http.StatusNotFound, "POST", "/v1/responses", object{"input": input})
	second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": input})
	want := []string{`mcp_call local.do {"what":"it"} completed did it`, "message You said: did it"}
	got, id := output(second.form), first["conversation"].(object)["id"]
	if !slices.Equal(got, want) || second.header.Get("Consort-Conversation") != id {
		t.Errorf("got %q in %s", got, second.text)
	}
	if got := second.form["output"].([]any)[0].(object)["approval_request_id"]; got != request {
		t.Errorf("the call was allowed by %v, not %v", got, request)
	}
	for _, item := range second.form["output"].([]any) {
		input = append(input, refer(item.(object)["id"]))
	}
	third := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": append(input, user("more"))})
	if got := output(third.form); !slices.Equal(got, []string{"message You said: more"}) {
		t.Errorf("then the output is %q", got)
	}
}

// TestCancelledWithoutAnswer: a chat whose turn is cancelled before it has an answer gets an error and not an empty
// answer, and one that has read a part of the answer begins another conversation, because the log does not have it.
func TestCancelledWithoutAnswer(t *testing.T) {
	blocks, asked := signals(echo)
	s := serve(t, blocks, nil, nil)
	w := s.begin(t.Context(), "/v1/chat/completions", object{"messages": []object{user("block")}})
	<-asked
	for id := range s.lengths() {
		s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
	}
	<-w.done
	if w.status != http.StatusBadRequest || !strings.Contains(w.body, `"cancelled"`) || w.header.Get("X-Should-Retry") != "false" {
		t.Errorf("status %d, %v: %s", w.status, w.header, w.body)
	}
	response := s.request("POST", "/v1/chat/completions", object{"messages": []object{user("block")}, "stream": true})
	id := response.Header.Get("Consort-Conversation")
	if err := readStream(response, func(e streamed) bool {
		if strings.Contains(e.data, "one ") {
			s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	messages := []object{user("block"), assistant("one "), user("go on")}
	next := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
	if got := next.header.Get("Consort-Conversation"); got == id {
		t.Error("the chat went on in a conversation without the part of the answer that it has")
	}
}

// leaving is a store whose client leaves just before a conversation gets its owner. It fails when the
// context has ended.
type leaving struct {
	history.Store
	leave context.CancelFunc
}

func (l *leaving) Describe(ctx context.Context, id string, change history.Change) error {
	l.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Store.Describe(ctx, id, change)
}

func (l *leaving) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Store.Append(ctx, id, length, canisters...)
}

// TestClientThatLeavesAtTheBeginning: a client that leaves when its message is in the log, but before its turn has begun,
// leaves no conversation without an owner, and none that always seems to be under way.
func TestClientThatLeavesAtTheBeginning(t *testing.T) {
	for path, body := range map[string]object{
		"/v1/chat/completions": {"messages": []object{user("hello")}},
		"/v1/responses":        {"input": "hello"},
		"/agui":                {"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "hello"}}},
		"/api/conversations":   {"message": "hello"},
	} {
		ctx, leave := context.WithCancel(t.Context())
		store := &leaving{Store: history.NewMemory(), leave: leave}
		s := serveStore(t, store, nil, echo, nil, nil)
		<-s.begin(ctx, path, body).done
		for info, err := range store.List(t.Context(), history.Filter{}) {
			if err != nil || info.Owner != "owner-ann" {
				t.Fatalf("%s: the conversation has the owner %q, %v", path, info.Owner, err)
			}
			s.ended(info.ID, 1)
		}
	}
}

// TestEndThatIsNoticedLate: the end of a broken connection is noticed when its client has sent its request again. The
// turn, which the second request follows now, goes on.
func TestEndThatIsNoticedLate(t *testing.T) {
	release := make(chan struct{})
	blocks, asked := signals(func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if request.History[len(request.History)-1].Kind() != canister.KindResult {
			uses(ctx, request, yield)
			return
		}
		yield(converse.Delta{Text: "picked"}, nil)
		select {
		case <-release:
			reply := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("picked"), Finish: canister.FinishStop}
			yield(converse.Reply{Message: reply}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	})
	s := serve(t, blocks, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("use pick")}, "tools": chatTools("pick")})
	<-asked
	message, ids := chatCalls(t, first)
	body := object{"messages": []object{user("use pick"), message, toolMessage(ids["pick"], "picked")}, "stream": true}
	ctx, leave := context.WithCancel(t.Context())
	broken := s.begin(ctx, "/v1/chat/completions", body)
	<-asked
	text, last := "", ""
	err := readStream(s.request("POST", "/v1/chat/completions", body), func(e streamed) bool {
		if strings.Contains(e.data, "picked") {
			text += "picked"
			leave()
			<-broken.done
			close(release)
		}
		last = e.data
		return true
	})
	if err != nil || text != "picked" || last != "[DONE]" {
		t.Errorf("the text is %q, the last event %q, %v", text, last, err)
	}
	for _, said := range ofKind[canister.Assistant](s, first.header.Get("Consort-Conversation")) {
		if said.Finish == canister.FinishCancelled {
			t.Error("the turn was cancelled")
		}
	}
}

// TestRepeatedByTheClient: OpenAI's clients repeat a request when their time is over. The message that is in the log does
// not enter a second time, unless the user sends it.
func TestRepeatedByTheClient(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]object{
		"/v1/chat/completions": {"messages": []object{user("block")}},
		"/v1/responses":        {"input": "block"},
	} {
		blocks, asked := signals(echo)
		s := serve(t, blocks, nil, nil)
		for n := range 2 {
			ctx, leave := context.WithCancel(t.Context())
			w := s.begin(ctx, path, body, "X-Stainless-Retry-Count", "0")
			<-asked
			leave()
			<-w.done
			a := s.want(http.StatusConflict, "POST", path, body, "X-Stainless-Retry-Count", "1")
			isNamed := slices.ContainsFunc(slices.Collect(maps.Keys(s.lengths())), func(id string) bool { return strings.Contains(a.text, id) })
			if !strings.Contains(a.text, `"already_sent"`) || !isNamed || a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %v, %s", path, a.header, a.text)
			}
			if got := len(s.lengths()); got != n+1 {
				t.Errorf("%s: there are %d conversations", path, got)
			}
		}
		body = object{"messages": []object{user("hello")}, "input": "hello"}
		delete(body, map[string]string{"/v1/responses": "messages", "/v1/chat/completions": "input"}[path])
		s.want(http.StatusOK, "POST", path, body, "X-Stainless-Retry-Count", "1") // the first one did not arrive
		s.want(http.StatusOK, "POST", path, body, "X-Stainless-Retry-Count", "1") // it has had its answer
	}
}

// TestRepeatedInTheBackground: the same for a turn in the background, which goes on when the client leaves. It turns red
// if start does not note the request.
func TestRepeatedInTheBackground(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	isFirst := true
	s := serve(t, echo, nil, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			err := enter(ctx)
			if isFirst {
				leave() // the message is in the log
			}
			isFirst = false
			return err
		}
	})
	body := object{"input": "hello", "background": true}
	<-s.begin(ctx, "/v1/responses", body, "X-Stainless-Retry-Count", "0").done
	if a := s.want(http.StatusConflict, "POST", "/v1/responses", body, "X-Stainless-Retry-Count", "1"); !strings.Contains(a.text, `"already_sent"`) {
		t.Errorf("it is answered %s", a.text)
	}
	for id, length := range s.lengths() {
		if ended, _ := s.ended(id, 0); ended.Reason != converse.ReasonAnswered {
			t.Errorf("the turn of %s, with %d canisters, ended with %v", id, length, ended)
		}
	}
	s.want(http.StatusOK, "POST", "/v1/responses", body, "X-Stainless-Retry-Count", "0") // the user sends it again
	s.want(http.StatusOK, "POST", "/v1/responses", body, "X-Stainless-Retry-Count", "1") // that had its answer
	if got := len(s.lengths()); got != 3 {
		t.Errorf("there are %d conversations", got)
	}
}

// TestLeftInTheBackground: a client that was sent the ID of a response in the background may not have it if it leaves at
// that moment, and repeats the request. A later request with the same body is not such a one. It turns red if the note
// ends with response.created, or lasts as long as that of another request.
func TestLeftInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		local, store := engineOf(t, func(_ context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
			<-release
			say(request, "hello", yield)
		})
		feed := httpapi.NewFeed(local, store)
		defer feed.Close()
		s := &served{t: t, server: &httptest.Server{Config: &http.Server{Handler: httpapi.New(feed, nil)}}}
		for n, want := range []int{http.StatusOK, http.StatusConflict, http.StatusOK} {
			ctx, leave := context.WithCancel(t.Context())
			w := s.begin(ctx, "/v1/responses", object{"input": "hello", "background": true, "stream": true}, "X-Stainless-Retry-Count", "1")
			synctest.Wait()
			leave()
			if <-w.done; w.status != want || want == http.StatusOK != strings.Contains(w.body, "response.created") {
				t.Errorf("request %d: %d %s", n, w.status, w.body)
			}
			time.Sleep(50 * time.Second)
		}
		close(release)
	})
}

// TestQuestionAfterOtherInstructions: a chat program whose instructions say what time it is answers a question.
func TestQuestionAfterOtherInstructions(t *testing.T) {
	s := serve(t, echo, ask, nil)
	now := func(text string) object { return object{"role": "system", "content": "It is " + text} }
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{now("10:00"), user("call: it")}})
	answer := object{"messages": []object{now("10:01"), user("call: it"), assistant(chatText(first)), user("/allow")}}
	s.as("bob").want(http.StatusConflict, "POST", "/v1/chat/completions", answer)
	allowed := s.want(http.StatusOK, "POST", "/v1/chat/completions", answer)
	got, want := allowed.header.Get("Consort-Conversation"), first.header.Get("Consort-Conversation")
	if got != want || chatText(allowed) != "You said: did it" {
		t.Errorf("the answer is %q, in %s", chatText(allowed), got)
	}
	s.want(http.StatusConflict, "POST", "/v1/chat/completions", answer)
}

// TestEarlierMessagesAreAdmitted: what admits a message sees the past that it brings.
func TestEarlierMessagesAreAdmitted(t *testing.T) {
	var seen [][]string
	s := serve(t, echo, nil, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			var texts []string
			for _, c := range append(slices.Clone(entry.Earlier), entry.Canister) {
				texts = append(texts, canister.TextOf(canister.ContentOf(c)))
			}
			seen = append(seen, texts)
			return enter(ctx)
		}
	})
	past := []object{{"role": "system", "content": "Obey."}, user("Do it."), assistant("Yes.")}
	s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": append(slices.Clone(past), user("go"))})
	s.want(http.StatusOK, "POST", "/v1/responses", object{"instructions": "Obey.", "input": append(slices.Clone(past[1:]), user("go"))})
	messages := []object{}
	for i, m := range append(slices.Clone(past), user("go")) {
		messages = append(messages, object{"id": string(rune('a' + i)), "role": m["role"], "content": m["content"]})
	}
	s.run(object{"threadId": "t", "messages": messages})
	for i, texts := range seen {
		if !slices.Equal(texts, []string{"Obey.", "Do it.", "Yes.", "go"}) {
			t.Errorf("request %d: seen were %q", i, texts)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d were admitted", len(seen))
	}
}

// TestFailedBeforeTheNextMessage: a response whose turn has failed after a call stays failed when the conversation goes on.
func TestFailedBeforeTheNextMessage(t *testing.T) {
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if request.History[len(request.History)-1].Kind() == canister.KindResult {
			yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
			return
		}
		echo(ctx, request, yield)
	}, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"}).form
	id, path := first["conversation"], "/v1/responses/"+first["id"].(string)
	for _, next := range []string{"hello", "more"} {
		if got := s.want(http.StatusOK, "GET", path, nil); got.form["status"] != "failed" || first["status"] != "failed" {
			t.Errorf("before %q, the response is %s", next, got.text)
		}
		second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": next, "conversation": id}).form
		if got := s.want(http.StatusOK, "GET", "/v1/responses/"+second["id"].(string), nil); got.form["status"] != "completed" {
			t.Errorf("the next one is %s", got.text)
		}
	}
}

// TestRunAgainAfterCancel: a front end whose user has stopped the answer, and then asks for it again, gets one.
func TestRunAgainAfterCancel(t *testing.T) {
	isBlocked := true
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if !isBlocked {
			say(request, "You said: "+lastText(request), yield)
			return
		}
		echo(ctx, request, yield)
	}, nil, nil)
	input := object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "block"}}}
	for range 2 {
		s.leave(input)
	}
	isBlocked = false
	for range 2 { // the second time, the log has the answer
		if _, text, last := s.run(input); text != "You said: block" || last["outcome"] == nil {
			t.Errorf("the text is %q, the last event %v", text, last)
		}
	}
}

// leave begins a run, and leaves when the model has begun to write.
func (s *served) leave(input object) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", s.server.URL+"/agui", strings.NewReader(mustJSON(s.t, input)))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set(who, "ann")
	request.Header.Set("Content-Type", "application/json")
	response, err := s.server.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	id := response.Header.Get("Consort-Conversation")
	length := s.lengths()[id]
	if err := readStream(response, func(e streamed) bool { return !strings.Contains(e.data, "one ") }); err != nil {
		s.t.Fatal(err)
	}
	leave()
	if ended, _ := s.ended(id, length); ended.Reason != converse.ReasonCancelled {
		s.t.Fatalf("it ended with %+v", ended)
	}
}

// TestNextMessageAfterAFailure: a message whose turn has failed or was stopped, and that the front end sends again
// before the next one, does not enter a second time. One that was refused does.
func TestNextMessageAfterAFailure(t *testing.T) {
	refused := false
	s := serve(t, recites, nil, refusing(&refused))
	said := func(id, text string) object { return object{"id": id, "role": "user", "content": text} }
	messages := []object{said("m1", "fail: send it to Ann")}
	if _, _, last := s.run(object{"threadId": "t", "messages": messages}); last["type"] != "RUN_ERROR" {
		t.Fatalf("the first run ended with %v", last)
	}
	messages = append(messages, said("m2", "block"))
	s.leave(object{"threadId": "t", "runId": "r", "messages": messages})
	s.leave(object{"threadId": "t", "runId": "r", "messages": messages}) // again, with another ID
	messages, refused = append(messages, said("m3", "well")), true
	s.want(http.StatusTooManyRequests, "POST", "/agui", object{"threadId": "t", "runId": "r", "messages": messages})
	messages, refused = append(messages, said("m4", "go on")), false
	want := "fail: send it to Ann|block|block|well\ngo on"
	for range 2 { // the second time, the log has the answer
		if _, text, last := s.run(object{"threadId": "t", "messages": messages}); text != want {
			t.Errorf("the model has read %q; the last event is %v", text, last)
		}
	}
}

func mustJSON(t *testing.T, form any) string {
	t.Helper()
	text, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
