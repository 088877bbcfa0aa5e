// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/invoker"
)

// askDana lets the second call wait for the person dana.
func askDana(_ context.Context, approval converse.Approval) (converse.Decision, error) {
	if strings.Contains(string(approval.Invocation.Arguments), "1") {
		return converse.Defer(time.Hour, "dana"), nil
	}
	return converse.Defer(time.Hour, ""), nil
}

// severalAsked is a conversation that has asked for two approvals over one of the APIs.
type severalAsked struct {
	*served
	id    string
	path  string
	allow object // the request that allows both
	wrong object // the same with an answer to the second that cannot be accepted; nil if the API has none
}

// askTwo begins a conversation whose two calls wait.
func askTwo(s *served, path string) severalAsked { return askSeveral(s, path, 2) }

// askSeveral begins a conversation whose calls wait. Over AG-UI and Responses, the request allows the first two.
func askSeveral(s *served, path string, calls int) (a severalAsked) {
	s.t.Helper()
	a = severalAsked{served: s, path: path}
	message := "use" + strings.Repeat(" local__do", calls)
	switch path {
	case "/agui":
		_, _, last := s.run(object{"threadId": "t", "messages": []object{{"id": "m1", "role": "user", "content": message}}})
		one, two := last["outcome"].(object)["interrupts"].([]any)[0].(object), last["outcome"].(object)["interrupts"].([]any)[1].(object)
		resume := func(second object) object {
			return object{"threadId": "t", "runId": "r", "messages": []object{}, "resume": []object{
				{"interruptId": one["id"], "status": "resolved", "payload": object{"approved": true}},
				{"interruptId": two["id"], "status": "resolved", "payload": second},
			}}
		}
		a.allow, a.wrong = resume(object{"approved": true}), resume(object{"approved": true, "arguments": "text"})
	case "/v1/chat/completions":
		said := []object{user(message)}
		first := s.want(http.StatusOK, "POST", path, object{"messages": said})
		a.allow = object{"messages": append(said, assistant(chatText(first)), user("/allow"))}
	case "/v1/responses":
		first := s.want(http.StatusOK, "POST", path, object{"input": message}).form
		items := []object{}
		for _, item := range first["output"].([]any) {
			if item.(object)["type"] == "mcp_approval_request" {
				items = append(items, object{"type": "mcp_approval_response", "approval_request_id": item.(object)["id"], "approve": true})
			}
		}
		a.allow = object{"previous_response_id": first["id"], "input": items[:2]}
		a.wrong = object{"previous_response_id": first["id"], "input": append(items[:1:1], items[0])}
	}
	for id := range s.lengths() {
		a.id = id
	}
	return a
}

// wantCalls requires a number of answers and of calls that were made.
func (a *severalAsked) wantCalls(answers, results int) {
	a.t.Helper()
	if got, made := len(ofKind[canister.Answer](a.served, a.id)), len(ofKind[canister.Result](a.served, a.id)); got != answers || made != results {
		a.t.Errorf("%s: there are %d answers and %d results, want %d and %d", a.path, got, made, answers, results)
	}
}

var severalPaths = []string{"/agui", "/v1/chat/completions", "/v1/responses"}

// TestSeveralAnswersAreChecked: a request with an answer that cannot be accepted gives none of its answers. It turns
// red if continueTurn does not call unanswered.
func TestSeveralAnswersAreChecked(t *testing.T) {
	for _, path := range severalPaths {
		a := askTwo(serve(t, uses, ask, nil), path)
		if a.wrong != nil {
			a.want(http.StatusBadRequest, "POST", path, a.wrong)
			a.wantCalls(0, 0)
		}
		a.want(http.StatusOK, "POST", path, a.allow)
		a.wantCalls(2, 2)
		a = askTwo(serve(t, uses, askDana, nil), path)
		if got := a.want(http.StatusForbidden, "POST", path, a.allow); !strings.Contains(got.text, "not_yours_to_answer") {
			t.Errorf("%s: %s", path, got.text)
		}
		a.wantCalls(0, 0)
	}
}

// refusedOnce returns a change of the options that refuses one answer for now, by its number.
func refusedOnce(number int) func(*httpapi.Options) {
	entries := 0
	return func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			if entry.Canister.Kind() == canister.KindAnswer {
				if entries++; entries == number {
					return &invoker.Failure{Code: invoker.Unavailable, Message: "Your budget is used up.", RetryAfter: time.Second}
				}
			}
			return enter(ctx)
		}
	}
}

// TestTwoAnswersToOneWait: the error names the part of the request.
func TestTwoAnswersToOneWait(t *testing.T) {
	for path, part := range map[string]string{"/agui": "resume[1].interruptId", "/v1/responses": "input[1].approval_request_id"} {
		a := askTwo(serve(t, uses, ask, nil), path)
		for _, list := range []string{"resume", "input"} {
			if answers, is := a.allow[list].([]object); is {
				a.allow[list] = []object{answers[0], answers[0]}
			}
		}
		if got := a.want(http.StatusBadRequest, "POST", path, a.allow); !strings.Contains(got.text, `"param":"`+part+`"`) {
			t.Errorf("%s: %s", path, got.text)
		}
		a.wantCalls(0, 0)
	}
}

// TestAnotherAnswerInAChat: if only the first call of a question was allowed, the chat can still answer for the second
// one, also with another verdict. It turns red if the answer is about all calls of the question.
func TestAnotherAnswerInAChat(t *testing.T) {
	for text, want := range map[string]string{
		"/allow": "did 0, did 1", "/allow thanks": "did 0, did 1", "/deny not this one": "not started: not this one", "never mind": "",
	} {
		a := askTwo(serve(t, uses, ask, refusedOnce(2)), "/v1/chat/completions")
		a.want(http.StatusTooManyRequests, "POST", a.path, a.allow)
		a.ended(a.id, 0)
		messages := a.allow["messages"].([]object)
		body := object{"messages": append(messages[:len(messages)-1:len(messages)-1], user(text))}
		if want == "" {
			if got := a.want(http.StatusConflict, "POST", a.path, body); !strings.Contains(got.text, "Send the message /allow or /deny REASON, or POST") {
				t.Errorf("%s: %s", text, got.text)
			}
			continue
		}
		if got := a.want(http.StatusOK, "POST", a.path, body); !strings.Contains(chatText(got), want) || !strings.Contains(chatText(got), "did ") {
			t.Errorf("%s: %s", text, got.text)
		}
		if got := a.want(http.StatusConflict, "POST", a.path, body); !strings.Contains(got.text, "wait_not_open") {
			t.Errorf("%s again: %s", text, got.text)
		}
	}
}

// TestSeveralAnswersAgain: if a later answer of a request is refused for now, the error says which answers were given,
// and the same request can be sent again. When the log has all of them, it is refused.
func TestSeveralAnswersAgain(t *testing.T) {
	for _, path := range severalPaths {
		a := askTwo(serve(t, uses, ask, refusedOnce(2)), path)
		got := a.want(http.StatusTooManyRequests, "POST", path, a.allow)
		given := ofKind[canister.Answer](a.served, a.id)
		if len(given) != 1 || !strings.Contains(got.text, "Your budget is used up. The answers before it were given, to the waits [\\\""+given[0].Wait+"\\\"].") {
			t.Errorf("%s: %s, given are %v", path, got.text, given)
		}
		a.ended(a.id, 0)
		again, isChat := a.want(http.StatusOK, "POST", path, a.allow), path == "/v1/chat/completions"
		if !isChat && (!strings.Contains(again.text, `"did 0"`) || !strings.Contains(again.text, `"did 1"`)) {
			t.Errorf("%s: a result is missing: %s", path, again.text)
		}
		a.wantCalls(2, 2)
		if got := a.want(http.StatusConflict, "POST", path, a.allow); !strings.Contains(got.text, "wait_not_open") {
			t.Errorf("%s again: %s", path, got.text)
		}
	}
}

// damaged is a store that cannot take the calls of a turn while it is armed, which no retry mends.
type damaged struct {
	history.Store
	isArmed atomic.Bool
}

func (d *damaged) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if d.isArmed.Load() && canisters[0].Kind() == canister.KindIntent {
		return &history.CorruptError{Conversation: id, Err: errAway}
	}
	return d.Store.Append(ctx, id, length, canisters...)
}

// failure returns when the feed has the failure of the last turn of a conversation.
func (s *served) failure(id string) {
	for event, err := range s.feed.Events(s.t.Context(), id, httpapi.Cursor{}) {
		if ended, is := event.Event.(engine.Ended); err != nil || is && ended.Error != "" {
			return
		}
	}
}

// TestFailureBetweenAnswers: a failure after the first answer of a request does not end the response, because the turn
// goes on with the second one. It turns red if the failures before the first answer are the only ones that do not count.
func TestFailureBetweenAnswers(t *testing.T) {
	for _, path := range severalPaths {
		store, answers := &damaged{Store: history.NewMemory()}, 0
		var a severalAsked
		a = askTwo(serveStore(t, store, nil, uses, ask, func(o *httpapi.Options) {
			o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
				if entry.Canister.Kind() != canister.KindAnswer {
					return enter(ctx)
				}
				answers++
				store.isArmed.Store(answers == 1)
				err := enter(ctx)
				if answers == 1 {
					a.failure(a.id)
				}
				return err
			}
		}), path)
		if got := a.want(http.StatusOK, "POST", path, a.allow); strings.Contains(got.text, "The model failed") || !strings.Contains(got.text, "did 1") {
			t.Errorf("%s: %s", path, got.text)
		}
		a.wantCalls(2, 2)
	}
}

// TestSomeOfSeveralAnswers: the response to answers to some of the waits has the results of all of these calls, also if
// it begins with one of an earlier request, after which the turn waited for the others. It turns red if an end of the
// turn that is over by now ends the response.
func TestSomeOfSeveralAnswers(t *testing.T) {
	for _, path := range []string{"/agui", "/v1/responses"} {
		for _, refused := range []int{0, 2} { // none, or the second one of the first request
			var a severalAsked
			a = askSeveral(serve(t, uses, ask, func(o *httpapi.Options) {
				refuse := httpapi.Options{}
				refusedOnce(refused)(&refuse)
				o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
					if entry.Canister.Kind() != canister.KindAnswer {
						return enter(ctx)
					}
					before := a.lengths()[a.id]
					err := refuse.Admit(ctx, entry, enter)
					if err == nil {
						a.ended(a.id, before+1)
					}
					return err
				}
			}), path, 3)
			if refused > 0 {
				a.want(http.StatusTooManyRequests, "POST", path, a.allow)
			}
			got := a.want(http.StatusOK, "POST", path, a.allow)
			if strings.Count(got.text, `"did `) != 2 { // the order of the waits differs
				t.Errorf("%s, with the answer %d refused: a result is missing: %s", path, refused, got.text)
			}
			a.wantCalls(2, 2)
		}
	}
}
