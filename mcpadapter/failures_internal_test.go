// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"fmt"
	"testing"

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
