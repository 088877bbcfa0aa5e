// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func TestAsFailure(t *testing.T) {
	own := invoker.Failf(invoker.NotFound, "no such city")
	var none *invoker.Failure
	for _, test := range []struct {
		name      string
		err       error
		code      invoker.Code
		message   string
		retryable bool
	}{
		{"a failure", own, invoker.NotFound, "no such city", false},
		{"a wrapped failure", fmt.Errorf("report: %w", own), invoker.NotFound, "no such city", false},
		{
			"a deadline", fmt.Errorf("get: %w", context.DeadlineExceeded), invoker.Timeout,
			"The tool did not answer in time. It may or may not have taken effect.", true,
		},
		{"a cancellation", context.Canceled, invoker.Canceled, "The call was interrupted. It may or may not have taken effect.", false},
		{"any error", io.ErrUnexpectedEOF, invoker.ExecutionFailed, "The tool ran and failed. The reason is in the log of the program that runs it.", false},
		{"a failure without a code", &invoker.Failure{Message: "m"}, invoker.ExecutionFailed, "m", false},
		{"an empty failure", &invoker.Failure{Code: invoker.Denied}, invoker.Denied, "The tool failed without saying why.", false},
		{"a failure of content alone", &invoker.Failure{Code: invoker.Denied, Content: canister.Texts("no")}, invoker.Denied, "", false},
		{"a nil failure", none, invoker.Internal, "The tool reported a failure without saying which.", false},
		{"a wrapped nil failure", fmt.Errorf("x: %w", none), invoker.Internal, "The tool reported a failure without saying which.", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := invoker.AsFailure(test.err)
			if got == nil || got.Code != test.code || got.Message != test.message || got.Retryable != test.retryable {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := invoker.AsFailure(io.ErrUnexpectedEOF); !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("the log does not get the reason: %+v", got)
	}
	if invoker.AsFailure(nil) != nil {
		t.Error("nil is a failure")
	}
	if invoker.AsFailure(own) != own {
		t.Error("a whole failure is not returned as it is")
	}
}

func TestAsFailureKeepsTheOuterErrorForLogs(t *testing.T) {
	inner := invoker.Failf(invoker.Unavailable, "down: %w", io.EOF)
	outer := fmt.Errorf("server files: %w", inner)
	got := invoker.AsFailure(outer)
	if got.Cause != outer || !errors.Is(got, io.EOF) || !got.Retryable {
		t.Errorf("got %+v", got)
	}
	if inner.Cause != io.EOF {
		t.Error("the inner failure was changed")
	}
}

func TestFailf(t *testing.T) {
	one := invoker.Failf(invoker.Unavailable, "%d: %w", 7, io.EOF)
	if one.Message != "7: EOF" || one.Cause != io.EOF || !one.Retryable || one.Error() != "UNAVAILABLE: 7: EOF" {
		t.Errorf("got %+v", one)
	}
	two := invoker.Failf(invoker.Denied, "%w and %w", io.EOF, io.ErrClosedPipe)
	if !errors.Is(two, io.EOF) || !errors.Is(two, io.ErrClosedPipe) || two.Retryable {
		t.Errorf("got %+v", two)
	}
	if plain := invoker.Failf(invoker.Denied, "no"); plain.Cause != nil {
		t.Errorf("got %+v", plain)
	}
}

func TestErrorFallsBackOnContent(t *testing.T) {
	f := &invoker.Failure{Code: invoker.ExecutionFailed, Content: canister.Texts("disk full")}
	if f.Error() != "EXECUTION_FAILED: disk full" {
		t.Error(f.Error())
	}
}
