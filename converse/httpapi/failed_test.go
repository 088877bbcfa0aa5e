// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/invoker"
)

// recites is a model that repeats the messages of the user that it reads. "fail" fails for good, and
// "block" waits for the end of the turn.
func recites(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
	var read []string
	for _, c := range request.History {
		if c.Kind() == canister.KindUser {
			read = append(read, canister.TextOf(canister.ContentOf(c)))
		}
	}
	switch {
	case strings.HasPrefix(lastText(request), "fail"):
		yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
	case lastText(request) == "block":
		echo(ctx, request, yield)
	default:
		say(request, strings.Join(read, "|"), yield)
	}
}

// TestFailedBackground: a response in the background whose turn has failed is failed, so that a client
// does not ask for ever, and so is the conversation, until the next message.
func TestFailedBackground(t *testing.T) {
	s := serve(t, recites, nil, nil)
	begun := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "fail", "background": true})
	id, path := begun.form["conversation"].(object)["id"].(string), "/v1/responses/"+begun.form["id"].(string)
	if ended, _ := s.ended(id, 0); ended.Error == "" {
		t.Fatalf("it ended with %+v", ended)
	}
	got := s.want(http.StatusOK, "GET", path, nil)
	if got.form["status"] != "failed" || !strings.Contains(fmt.Sprint(got.form["error"]), "The model failed") {
		t.Errorf("the response is %s", got.text)
	}
	if state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; state != "failed" {
		t.Errorf("the conversation is %v", state)
	}
	next := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "block", "background": true, "conversation": id})
	if state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; state != "open" {
		t.Errorf("after the next message the conversation is %v", state)
	}
	if got := s.want(http.StatusOK, "GET", "/v1/responses/"+next.form["id"].(string), nil); got.form["status"] != "in_progress" {
		t.Errorf("the next response is %s", got.text)
	}
}

// TestFailedBackgroundIsRetried: a turn that is retried has not failed.
func TestFailedBackgroundIsRetried(t *testing.T) {
	begun, again, isFirst := make(chan struct{}), make(chan struct{}), true
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if isFirst {
			isFirst = false
			yield(nil, &converse.ModelError{Status: http.StatusServiceUnavailable, Message: "later", Retryable: true})
			return
		}
		close(begun)
		select {
		case <-again:
		case <-ctx.Done():
		}
		say(request, "done", yield)
	}, nil, nil)
	id := s.create("hello")
	<-begun
	if state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; state != "open" {
		t.Errorf("the conversation is %v", state)
	}
	close(again)
	s.ended(id, 0)
}

// TestEditedAfterFailure: if the last message of a chat has failed, or was cancelled, the model does not
// read it together with the message that the user sends instead.
func TestEditedAfterFailure(t *testing.T) {
	s := serve(t, recites, nil, nil)
	chat := func(last string) object {
		return object{"messages": []object{user("one"), assistant("one"), user(last)}}
	}
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("one")}})
	id := first.header.Get("Consort-Conversation")
	s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", chat("fail: send it to Ann")) // many clients repeat after 502
	for _, c := range []struct{ say, want string }{
		{"send it to Ben", "one|send it to Ben"}, // after the failure
		{"send it to Cid", "one|send it to Cid"}, // edited once more
	} {
		a := s.want(http.StatusOK, "POST", "/v1/chat/completions", chat(c.say))
		if got := chatText(a); got != c.want || a.header.Get("Consort-Conversation") == id {
			t.Errorf("the model has read %q", got)
		}
	}
	on := object{"messages": []object{user("one"), assistant("one"), user("send it to Ben"), assistant("one|send it to Ben"), user("and?")}}
	if got := chatText(s.want(http.StatusOK, "POST", "/v1/chat/completions", on)); got != "one|send it to Ben|and?" {
		t.Errorf("then the model has read %q", got)
	}
}

// TestForkedChat: a chat goes on in its own conversation and not in a fork of its beginning.
func TestForkedChat(t *testing.T) {
	s := serve(t, recites, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("one")}})
	id := first.header.Get("Consort-Conversation")
	s.want(http.StatusCreated, "POST", "/api/conversations/"+id+"/fork", object{"position": 1})
	a := s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": []object{user("one"), assistant("one"), user("two")}})
	if got := a.header.Get("Consort-Conversation"); got != id || chatText(a) != "one|two" {
		t.Errorf("it went on in %s, not %s, with %q", got, id, chatText(a))
	}
}

// TestResponsesAtOnce: of two requests that continue the same response at once, none reads the message
// of the other.
func TestResponsesAtOnce(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if lastText(request) == "left" {
			close(inside)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		recites(ctx, request, yield)
	}, nil, func(o *httpapi.Options) {
		admit := make(chan struct{})
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			if canister.TextOf(canister.ContentOf(entry.Canister)) == "left" { // the other request is faster
				<-admit
			}
			if canister.TextOf(canister.ContentOf(entry.Canister)) == "right" {
				close(admit)
				<-inside
			}
			return enter(ctx)
		}
	})
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "one"})
	begin := func(text string) chan answer {
		done := make(chan answer, 1)
		go func() {
			done <- s.do("POST", "/v1/responses", object{"input": text, "previous_response_id": first.form["id"]})
		}()
		return done
	}
	left, right := begin("left"), begin("right")
	select {
	case a := <-right:
		close(release)
		if got := strings.Join(output(a.form), " "); got != "message one|right" {
			t.Errorf("the model has read %q", got)
		}
	case <-time.After(time.Minute):
		close(release)
		t.Error("one request waits for the other")
	}
	if got := strings.Join(output((<-left).form), " "); got != "message one|left" {
		t.Errorf("the model has read %q", got)
	}
}

// TestOutputAsInput: a client sends the whole output of a response again, instead of its ID, and its messages
// have IDs that no other response has.
func TestOutputAsInput(t *testing.T) {
	s := serve(t, echo, nil, nil)
	first := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"})
	items := append([]any{user("call: it")}, first.form["output"].([]any)...)
	second := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": append(items, object{"type": "reasoning"}, user("more"))})
	if got := strings.Join(output(second.form), " "); got != "message You said: more" {
		t.Errorf("the answer is %q", got)
	}
	results := ofKind[canister.Result](s, second.header.Get("Consort-Conversation"))
	if len(results) != 1 || canister.TextOf(results[0].Content) != "did it" {
		t.Errorf("the results are %v", results)
	}
	seen := map[any]bool{}
	for _, one := range append(first.form["output"].([]any), second.form["output"].([]any)...) {
		if id := one.(object)["id"]; seen[id] {
			t.Errorf("two items are %v", id)
		} else {
			seen[id] = true
		}
	}
	stored := s.want(http.StatusOK, "GET", "/v1/responses/"+second.form["id"].(string), nil)
	if got, want := fmt.Sprint(stored.form["output"]), fmt.Sprint(second.form["output"]); got != want {
		t.Errorf("the stored output is %s, not %s", got, want)
	}
}

// TestShouldRetry: OpenAI's clients send a request again after 409 and 429 unless a header forbids it.
func TestShouldRetry(t *testing.T) {
	refusal := error(nil)
	s := serve(t, echo, ask, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			if refusal != nil {
				return refusal
			}
			return enter(ctx)
		}
	})
	waiting := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it"})
	next := object{"input": "hurry", "previous_response_id": waiting.form["id"]}
	if a := s.want(http.StatusConflict, "POST", "/v1/responses", next); a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("a conflict: %v", a.header)
	}
	for _, c := range []struct {
		err    error
		status int
		header string
	}{
		{&invoker.Failure{Code: invoker.Unavailable, Message: "Later.", RetryAfter: time.Minute}, http.StatusTooManyRequests, ""},
		{&invoker.Failure{Code: invoker.Unavailable, Message: "Tomorrow.", RetryAfter: 24 * time.Hour}, http.StatusTooManyRequests, "false"},
		{&invoker.Failure{Code: invoker.Unavailable, Message: "Away."}, http.StatusServiceUnavailable, ""},
		{invoker.Failf(invoker.OutcomeUnknown, "Look first."), http.StatusConflict, "false"},
		{invoker.Failf(invoker.InvalidArguments, "Wrong."), http.StatusBadRequest, ""},
		{fmt.Errorf("%w: %q", engine.ErrBusy, "c1"), http.StatusConflict, "false"},
		{fmt.Errorf("%w (%w)", engine.ErrClosed, engine.ErrBusy), http.StatusServiceUnavailable, ""},
	} {
		refusal = c.err
		if a := s.want(c.status, "POST", "/v1/chat/completions", object{"messages": []object{user("x")}}); a.header.Get("X-Should-Retry") != c.header {
			t.Errorf("%v: %v", c.err, a.header)
		}
	}
}

// TestMessageOfAStoppedEngine: a message that the next start of the engine continues is not sent again.
func TestMessageOfAStoppedEngine(t *testing.T) {
	s := serve(t, echo, nil, nil)
	if err := s.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := s.want(http.StatusBadRequest, "POST", "/v1/chat/completions", object{"messages": []object{user("x")}}) // 503 is repeated
	if len(s.lengths()) != 1 || a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d conversations, %v", len(s.lengths()), a.header)
	}
}

// unsure is a store that can be away, from the beginning or from its first append on, which takes effect.
type unsure struct {
	history.Store
	isAway atomic.Bool
}

var errAway = errors.New("away")

func (u *unsure) Info(ctx context.Context, id string) (history.Info, error) {
	if u.isAway.Load() {
		return history.Info{}, errAway
	}
	return u.Store.Info(ctx, id)
}

func (u *unsure) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	if u.isAway.Load() {
		return func(yield func(canister.Canister, error) bool) { yield(nil, errAway) }
	}
	return u.Store.Read(ctx, id, after)
}

func (u *unsure) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	u.isAway.Store(true)
	return errors.Join(u.Store.Append(ctx, id, length, canisters...), errAway)
}

// panicking is a store whose Append panics after it has taken effect, if it is armed.
type panicking struct {
	history.Store
	isArmed atomic.Bool
}

func (p *panicking) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	err := p.Store.Append(ctx, id, length, canisters...)
	if p.isArmed.Load() {
		panic(errAway)
	}
	return err
}

// TestMessageOfAPanic: a message whose append panics may be in the log, too.
func TestMessageOfAPanic(t *testing.T) {
	store := &panicking{Store: history.NewMemory()}
	s := serveStore(t, store, nil, echo, nil, nil)
	id := s.create("first")
	s.ended(id, 0)
	store.isArmed.Store(true)
	defer store.isArmed.Store(false)
	a := s.want(http.StatusBadRequest, "POST", "/v1/responses", object{"conversation": id, "input": "x"})
	if a.header.Get("X-Should-Retry") != "false" {
		t.Errorf("it may be repeated: %v", a.header)
	}
}

// TestMessageThatMayBeStored: clients are not told to repeat a request whose message is in the log, or may be. They are
// if nothing was sent.
func TestMessageThatMayBeStored(t *testing.T) {
	away := &unsure{Store: history.NewMemory()}
	away.isAway.Store(true)
	for name, c := range map[string]struct {
		store  history.Store
		change func(*httpapi.Options)
		status int
	}{
		"without a description": {store: &forgetful{Store: history.NewMemory()}, status: http.StatusBadRequest},
		"perhaps appended":      {store: &unsure{Store: history.NewMemory()}, status: http.StatusBadRequest},
		"no store":              {store: away, status: http.StatusServiceUnavailable},
		"not opened": {store: history.NewMemory(), status: http.StatusServiceUnavailable, change: func(o *httpapi.Options) {
			o.Open = func(context.Context, string) (*converse.Conversation, error) { return nil, errAway }
		}},
	} {
		s := serveStore(t, c.store, nil, echo, nil, c.change)
		a := s.want(c.status, "POST", "/v1/chat/completions", object{"messages": []object{user("x")}})
		if isFinal := a.header.Get("X-Should-Retry") == "false"; isFinal != (c.status == http.StatusBadRequest) {
			t.Errorf("%s: %v", name, a.header)
		}
	}
}

// TestBudgetBackground: a response in the background whose turn was ended by a budget is incomplete, and the
// conversation is done, also for readers that come later. The same message, sent again, has a new end.
func TestBudgetBackground(t *testing.T) {
	var suffices atomic.Bool
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if !suffices.Load() {
			yield(nil, &budget.ReachedError{})
			return
		}
		recites(ctx, request, yield)
	}, nil, nil)
	begun := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello", "background": true})
	id, path := begun.form["conversation"].(object)["id"].(string), "/v1/responses/"+begun.form["id"].(string)
	if ended, _ := s.ended(id, 0); ended.Reason != converse.ReasonBudget {
		t.Fatalf("it ended with %+v", ended)
	}
	if got := s.want(http.StatusOK, "GET", path, nil); got.form["status"] != "incomplete" || got.form["error"] != nil {
		t.Errorf("the response is %s", got.text)
	}
	if state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; state != "done" {
		t.Errorf("the conversation is %v", state)
	}
	run := object{"threadId": "t", "messages": []object{{"id": "m", "role": "user", "content": "hello"}}}
	for range 2 {
		if _, text, last := s.run(run); text != "" || last["type"] == "" {
			t.Errorf("the run ended with %q and %v", text, last)
		}
	}
	suffices.Store(true)
	if _, text, last := s.run(run); text != "hello" || last["type"] != "RUN_FINISHED" {
		t.Errorf("when the budget suffices, the run ended with %q and %v", text, last)
	}
}

// TestStoredFinalAnswer: a stored response with the final answer at a limit is incomplete, whatever the limits are now.
func TestStoredFinalAnswer(t *testing.T) {
	s := serve(t, echo, nil, nil)
	begun := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello"})
	id, first := begun.header.Get("Consort-Conversation"), begun.form["id"].(string)
	limit := canister.Extra{Metadata: canister.Fields{"io.github.consort-go/limit": []byte(`"token_limit"`)}}
	if err := s.store.Append(t.Context(), id, 2, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("more")},
		canister.Assistant{Head: canister.Head{ID: "a", Extra: limit}, Content: canister.Texts("enough"), Finish: canister.FinishStop}); err != nil {
		t.Fatal(err)
	}
	if got := s.want(http.StatusOK, "GET", "/v1/responses/"+strings.TrimSuffix(first, "0")+"2", nil); got.form["status"] != "incomplete" {
		t.Errorf("the response is %s", got.text)
	}
}
