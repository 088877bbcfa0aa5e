// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/httpapi"
)

// answeredMeanwhile is an engine in which a wait is answered just after a message was refused
// because of it.
type answeredMeanwhile struct {
	*engine.Local
	answer  func()
	refused atomic.Int32
	again   chan struct{} // closed when the message is sent again
	cancels atomic.Int32
}

func (e *answeredMeanwhile) Send(ctx context.Context, id string, message canister.User) error {
	if e.refused.Load() == 1 {
		close(e.again)
	}
	err := e.Local.Send(ctx, id, message)
	if errors.Is(err, engine.ErrWaiting) && e.refused.Add(1) == 1 {
		e.answer()
	}
	return err
}

func (e *answeredMeanwhile) Cancel(ctx context.Context, id string) error {
	e.cancels.Add(1)
	return e.Local.Cancel(ctx, id)
}

// A message that is refused because of a call that is answered at that moment does not cancel the
// turn that goes on with the answer.
func TestMessageWhileTheCallIsAnswered(t *testing.T) {
	begun, e := make(chan struct{}), &answeredMeanwhile{again: make(chan struct{})}
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if last := request.History[len(request.History)-1]; last.Kind() == canister.KindResult {
			close(begun)
			select {
			case <-e.again: // the turn is under way until the message is sent again
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
		uses(ctx, request, yield)
	}, nil, nil)
	e.Local = s.engine
	feed := httpapi.NewFeed(e, s.store)
	other := *s
	other.server = httptest.NewServer(httpapi.New(feed, nil))
	t.Cleanup(func() { feed.Close(); other.server.Close() })
	asked := object{"messages": []object{user("use pick")}, "tools": chatTools("pick")}
	first := other.want(http.StatusOK, "POST", "/v1/chat/completions", asked)
	message, _ := chatCalls(t, first)
	id := first.header.Get("Consort-Conversation")
	e.answer = func() {
		wait := ofKind[canister.Wait](s, id)[0]
		answer := canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAccept, Content: canister.Texts("picked"), By: "client"}
		if err := e.Answer(t.Context(), id, answer); err != nil {
			t.Error(err)
		}
		<-begun
	}
	messages := []object{user("use pick"), message, user("more")}
	next := other.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
	said := ofKind[canister.Assistant](s, id)
	if e.cancels.Load() != 0 || len(said) != 3 ||
		canister.TextOf(said[1].Content) != "picked" || chatText(next) != "You said: more local__do" {
		t.Errorf("%d cancels, %d canisters", e.cancels.Load(), len(s.wholeLog(id)))
	}
}
