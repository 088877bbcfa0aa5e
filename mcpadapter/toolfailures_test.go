// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
)

// TestToldFailure: a failure in our form comes back as it was, in _meta or as
// structured content; what only this program can say is not taken over.
func TestToldFailure(t *testing.T) {
	for _, test := range []struct {
		name   string
		told   *invoker.Failure
		result string // with the failure at %s
		want   invoker.Failure
	}{
		{"in _meta", &invoker.Failure{Code: invoker.Conflict, Message: "m"},
			`{"isError":true,"content":[{"type":"text","text":"taken"}],"_meta":{"io.github.consort-go/failure":%s}}`,
			invoker.Failure{Code: invoker.Conflict, Message: "taken"}},
		{"structured", invoker.Invalid("/title", "too long"), `{"isError":true,"content":[],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.InvalidArguments, Message: "too long", Pointer: "/title"}},
		{"bare", &invoker.Failure{Code: invoker.NotFound, Message: "m"}, `{"isError":true,"_meta":{"io.github.consort-go/failure":%s}}`,
			invoker.Failure{Code: invoker.NotFound, Message: "m"}},
		{"later", invoker.UnavailableFor(3*time.Second, "busy"), `{"isError":true,"content":[{"type":"text","text":"busy"}],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.Unavailable, Message: "busy", Retryable: true, RetryAfter: 3 * time.Second}},
		{"unknown", &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "m", Retryable: true},
			`{"isError":true,"content":[{"type":"text","text":"m"}],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.OutcomeUnknown, Message: "m"}},
		{"canceled", &invoker.Failure{Code: invoker.Canceled, Message: "m"}, `{"isError":true,"content":[{"type":"text","text":"m"}],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.ExecutionFailed, Message: "m"}},
		{"internal", &invoker.Failure{Code: invoker.Internal, Message: "m"}, `{"isError":true,"content":[{"type":"text","text":"m"}],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.ExecutionFailed, Message: "m"}},
		{"no vocabulary", &invoker.Failure{Code: "EVIL", Message: "m"}, `{"isError":true,"content":[{"type":"text","text":"t"}],"structuredContent":%s}`,
			invoker.Failure{Code: invoker.ExecutionFailed, Message: "t"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method == "tools/call" {
					mcptest.Reply(w, m, fmt.Sprintf(test.result, structured(test.told)))
					return true
				}
				return false
			})
			_, err := mcptest.Tool(t, openScripted(t, s), "write").Invoke(mcptest.Within(t), &invoker.Call{})
			got := invoker.AsFailure(err)
			if got == nil {
				t.Fatal("the call succeeded")
			}
			want := test.want
			if got.Code != want.Code || got.Message != want.Message || got.Pointer != want.Pointer ||
				got.RetryAfter != want.RetryAfter || got.Retryable != want.Retryable {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if canister.TextOf(got.Content) == "" && len(got.Content) == 0 {
				t.Error("the failure has no content, so that the ensemble takes it for its connection's")
			}
		})
	}
}
