// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/protobuf/proto"
)

// Whatever a server answers becomes content, or a failure that says something;
// and content arrives again as it was when it is served on.
func FuzzResponse(f *testing.F) {
	f.Add(true, `{"n":1}`, ``, int32(0), ``, ``)
	f.Add(true, `"text"`, `[{"type":"text","text":"a"},{"type":"image","data":"AQ==","mime":"image/png"}]`, int32(0), ``, ``)
	f.Add(true, ``, `[{"type":"structured","json":NaN}]`, int32(0), ``, ``)
	f.Add(false, ``, ``, int32(2), `down`, `{"error":{"code":"NOT_FOUND","message":"m","retry_after_ms":-1}}`)
	f.Add(false, ``, `[{"type":"text","text":{"base64":"6Q=="}}]`, int32(-7), ``, `{"error":null}`)
	f.Fuzz(func(t *testing.T, success bool, result, content string, code int32, message, failure string) {
		response := &toolspb.ToolCallResponse{
			Success: success, ResultJson: result, ContentJson: content,
			ErrorCode: toolspb.ErrorCode(code), ErrorMessage: message, FailureJson: failure,
		}
		output, failed := outputOf(response)
		if success == (failed != nil) {
			t.Fatalf("success %t became %v", success, failed)
		}
		if failed != nil && (failed.Code == "" || failed.Message == "" || len(failed.Content) == 0) {
			t.Errorf("the failure says nothing: %+v", failed)
		}
		again, _, _ := respond(output, failed, 1<<30)
		if _, err := proto.Marshal(again); err != nil {
			t.Fatalf("%+v cannot be sent on: %v", again, err)
		}
		if !success || !utf8.ValidString(result) {
			return
		}
		sentOn, failed := outputOf(again)
		if failed != nil || canister.TextOf(sentOn.Content) != canister.TextOf(output.Content) || len(sentOn.Content) != len(output.Content) {
			t.Errorf("%+v was sent on as %+v, %v", output.Content, sentOn.Content, failed)
		}
	})
}

// An endpoint from the environment is a target, or an error that does not show it.
func FuzzSidecar(f *testing.F) {
	for _, endpoint := range []string{"https://a:1", "a?tls=true", "dns://1.1.1.1/a:1", "unix:/run/a", "://", "[::1", "http://user:password@a"} {
		f.Add(endpoint, "50001")
	}
	f.Fuzz(func(t *testing.T, endpoint, port string) {
		target, _, err := sidecar(endpoint, port)
		if err == nil && target == "" {
			t.Errorf("%q leads nowhere", endpoint)
		}
	})
}
