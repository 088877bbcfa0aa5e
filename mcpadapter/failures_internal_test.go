// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/invoker"
)

// endedLink is a link that has ended.
type endedLink struct {
	link
	cause error
}

func (l endedLink) err() error { return l.cause }

// A request that is cancelled because its connection was lost to an answer that is too
// large says so. One that had not reached the server, or that its caller cancelled, does
// not.
func TestCancelledWithItsConnection(t *testing.T) {
	large := fmt.Errorf("sent a line: %w", subprocess.ErrMessageTooLarge)
	for name, test := range map[string]struct {
		cause error
		sent  bool
		want  invoker.Code
	}{
		"too large": {large, true, invoker.ResultTooLarge},
		"not sent":  {large, false, invoker.Canceled},
		"lost":      {subprocess.ErrStdoutClosed, true, invoker.Canceled},
		"caller":    {nil, true, invoker.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			r := &requester{link: endedLink{cause: test.cause}, interceptor: &interceptor{}}
			x := new(exchange)
			x.left.Store(test.sent)
			if got := r.failure(context.Canceled, x, false).Code; got != test.want {
				t.Errorf("the failure is %s, want %s", got, test.want)
			}
		})
	}
}

// Only some refusals say that a server has no stream to listen to, and fewer after it had one.
func TestGaveUp(t *testing.T) {
	for name, test := range map[string]struct {
		err           error
		first, opened bool
	}{
		"405":        {&statusError{status: 405}, true, true},
		"404":        {&statusError{status: 404}, true, false},
		"409":        {&statusError{status: 409}, true, false},
		"429":        {&statusError{status: 429}, false, false},
		"503":        {&statusError{status: 503}, false, false},
		"a web page": {errNoStream, true, false},
	} {
		c := &httpConnection{ctx: t.Context()}
		if first, opened := c.gaveUp(test.err, 0, false), c.gaveUp(test.err, 0, true); first != test.first || opened != test.opened {
			t.Errorf("%s: gave up %t at first, and %t after a stream", name, first, opened)
		}
	}
}

// The failures of a server that is busy, and of a request without effect that it could not
// answer, have the time after which the server wants the next attempt.
func TestRetryAfter(t *testing.T) {
	for status, wait := range map[int]time.Duration{429: 7 * time.Second, 503: 7 * time.Second, 500: 7 * time.Second, 404: 0} {
		e := &statusError{status: status, retryAfter: 7 * time.Second}
		if got := e.failure(true, e).RetryAfter; got != wait {
			t.Errorf("status %d: %v, want %v", status, got, wait)
		}
	}
}

// A server cannot ask for a pause of less than firstRetry between two streams. If it tries, that
// is no reason for a longer one.
func TestNextWait(t *testing.T) {
	for _, test := range []struct{ last, asked, lived, want time.Duration }{
		{time.Second, 100 * time.Millisecond, 0, firstRetry},
		{time.Second, 3 * time.Second, 0, 3 * time.Second},
		{time.Second, time.Hour, 0, lastRetry},
		{time.Second, 0, 0, 2 * time.Second},
		{time.Second, 0, time.Minute, firstRetry},
	} {
		if got := nextWait(test.last, test.asked, test.lived); got != test.want {
			t.Errorf("after %v, asked for %v, lived for %v: %v, want %v", test.last, test.asked, test.lived, got, test.want)
		}
	}
}
