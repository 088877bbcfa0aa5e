// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// TestTurnsAndLimits: a turn that has had as many exchanges as the default allows is under way
// if its limit is higher, and is over if its limit was reached.
func TestTurnsAndLimits(t *testing.T) {
	store := history.NewMemory()
	silent := func(_ context.Context, r *converse.Request, yield func(converse.ModelEvent, error) bool) {
		say(r, "", yield)
	}
	for limit, want := range map[int][2]string{0: {"done", "incomplete"}, 16: {"done", "incomplete"}, 17: {"open", "in_progress"}, -1: {"open", "in_progress"}} {
		limits := func() converse.Limits { return converse.Limits{Exchanges: limit} }
		s := serveStore(t, store, nil, silent, nil, func(o *httpapi.Options) { o.Limits = limits })
		id := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "begin"}).form["id"].(string)
		conversation := s.want(http.StatusOK, "GET", "/v1/responses/"+id, nil).form["conversation"].(object)["id"].(string)
		if err := s.store.Append(t.Context(), conversation, 2, exchanges(16)...); err != nil {
			t.Fatal(err)
		}
		if got := s.want(http.StatusOK, "GET", "/api/conversations/"+conversation, nil).form["state"]; got != want[0] {
			t.Errorf("with the limit %d the conversation is %v, want %s", limit, got, want[0])
		}
		if got := s.want(http.StatusOK, "GET", "/v1/responses/resp_"+conversation+"_2", nil).form["status"]; got != want[1] {
			t.Errorf("with the limit %d the response is %v, want %s", limit, got, want[1])
		}
	}
}

// exchanges returns a turn in which a model has called a tool so often.
func exchanges(n int) []canister.Canister {
	turn := []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("go on")}}
	for i := range n {
		a, call, result := fmt.Sprint("a", i), fmt.Sprint("c", i), fmt.Sprint("r", i)
		turn = append(turn, canister.Assistant{Head: canister.Head{ID: a}, Model: "test", Finish: canister.FinishInvocations},
			canister.Invocation{Head: canister.Head{ID: call}, Message: a, CallID: call, Name: "local__do", Arguments: `{"what":"it"}`},
			canister.Result{Head: canister.Head{ID: result}, Invocation: call, Content: canister.Texts("did it")})
	}
	return turn
}
