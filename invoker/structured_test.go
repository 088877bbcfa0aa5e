// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func TestStructured(t *testing.T) {
	var none *invoker.Failure
	for _, test := range []struct {
		failure *invoker.Failure
		want    string
	}{
		{invoker.Failf(invoker.NotFound, "no task %d", 7), `{"error":{"code":"NOT_FOUND","message":"no task 7","retryable":false}}`},
		{
			invoker.Invalid("/title", "the title is blank"),
			`{"error":{"code":"INVALID_ARGUMENTS","message":"the title is blank","retryable":false,"pointer":"/title"}}`,
		},
		{
			invoker.UnavailableFor(1500*time.Millisecond, "busy: %w", io.EOF),
			`{"error":{"code":"UNAVAILABLE","message":"busy: EOF","retryable":true,"retry_after_ms":1500}}`,
		},
		{invoker.UnavailableFor(time.Nanosecond, "busy"), `{"error":{"code":"UNAVAILABLE","message":"busy","retryable":true,"retry_after_ms":1}}`},
		{invoker.Failf(invoker.Conflict, "already done"), `{"error":{"code":"CONFLICT","message":"already done","retryable":false}}`},
		{&invoker.Failure{Code: invoker.Denied, Content: canister.Texts("not today")}, `{"error":{"code":"DENIED","message":"not today","retryable":false}}`},
		{&invoker.Failure{}, `{"error":{"code":"EXECUTION_FAILED","message":"The tool failed without saying why.","retryable":false}}`},
		{none, `{"error":{"code":"INTERNAL","message":"The tool reported a failure without saying which.","retryable":false}}`},
	} {
		got := test.failure.Structured()
		if string(got.JSON) != test.want {
			t.Errorf("got  %s\nwant %s", got.JSON, test.want)
		}
		back, ok := invoker.FailureFrom(got.JSON)
		if !ok || !reflect.DeepEqual(back.Structured(), got) || back.Cause != nil {
			t.Errorf("%s came back as %+v", got.JSON, back)
		}
	}
	secret := &invoker.Failure{Code: invoker.Internal, Message: "m", Cause: errors.New("s3cret"), Metadata: canister.Fields{"a": []byte(`"s3cret"`)}}
	if text := string(secret.Structured().JSON); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
}

func TestEveryCodeComesBack(t *testing.T) {
	for _, code := range []invoker.Code{
		invoker.InvalidArguments, invoker.ToolNotFound, invoker.NotFound, invoker.Unauthorized, invoker.Denied, invoker.Conflict,
		invoker.Unavailable, invoker.Timeout, invoker.Canceled, invoker.ExecutionFailed, invoker.OutcomeUnknown, invoker.Protocol,
		invoker.ResultTooLarge, invoker.Internal,
	} {
		failure, ok := invoker.FailureFrom(invoker.Failf(code, "m").Structured().JSON)
		if !ok || failure.Code != code {
			t.Errorf("%s came back as %+v", code, failure)
		}
	}
}

func TestFailureFromWhatIsNone(t *testing.T) {
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `{"error":null}`, `{"error":"x"}`, `{"error":{}}`, `{"error":{"code":"NOT_FOUND"}}`,
		`{"error":{"code":"VALIDATION_ERROR","message":"m"}}`, `{"error":{"code":7,"message":"m"}}`, `{"error":{"code":"","message":"m"}}`,
	} {
		if failure, ok := invoker.FailureFrom([]byte(text)); ok || failure != nil {
			t.Errorf("%s: %+v", text, failure)
		}
	}
	for text, want := range map[string]time.Duration{`86400000`: 24 * time.Hour, `86400001`: 0, `-5`: 0, `9223372036854775807`: 0} {
		failure, ok := invoker.FailureFrom([]byte(`{"error":{"code":"UNAVAILABLE","message":"m","retryable":true,"retry_after_ms":` + text + `}}`))
		if !ok || failure.RetryAfter != want || !failure.Retryable {
			t.Errorf("%s: %+v", text, failure)
		}
	}
}
