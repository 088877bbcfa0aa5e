// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/openai/openai-go/v3/option"
)

// exchange is one running exchange, on the goroutine of the caller's loop.
type exchange struct {
	m       *Model
	request *converse.Request
	yield   func(converse.ModelEvent, error) bool
	ctx     context.Context
	cancel  context.CancelCauseFunc
	watch   *watch
	lent    *loan

	attempts int  // requests sent so far
	spoken   bool // a delta has been yielded
	left     bool // the caller has left the loop
	// failed is the error of the last request; nil if it succeeded.
	failed *converse.ModelError
}

// exchange runs one exchange from the request to the reply.
func (m *Model) exchange(ctx context.Context, request *converse.Request, t *transcript, yield func(converse.ModelEvent, error) bool) {
	if request == nil || request.NewID == nil {
		yield(nil, errors.New("openaimodel: the request, or its NewID, is nil"))
		return
	}
	body, lent, err := t.body(ctx, m, request)
	if err != nil {
		yield(nil, err)
		return
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{m: m, request: request, yield: yield, ctx: inner, cancel: cancel, lent: lent}
	x.watch = &watch{end: cancel}
	defer x.watch.stop()
	for {
		err := x.attempt(body)
		if err == nil || x.left {
			return
		}
		if gone := givenUp(ctx, inner); gone != nil {
			err = gone
		} else if x.withoutUsage(err) {
			if body, x.lent, err = t.body(ctx, m, request); err == nil {
				continue
			}
		} else if x.again(err) {
			continue
		}
		if !x.left {
			yield(nil, err)
		}
		return
	}
}

// attempt sends the request, with the SDK's retries, and reads the answer.
func (x *exchange) attempt(body []byte) error {
	var res *http.Response
	err := x.m.client.Post(x.ctx, "chat/completions", body, &res,
		option.WithMiddleware(x.observe),
		option.WithMaxRetries(max(0, x.m.opts.MaxRetries-x.attempts)))
	if res != nil {
		defer res.Body.Close()
	}
	switch {
	case x.failed != nil:
		return x.failed
	case err != nil:
		return x.m.unreachable(err)
	}
	reply, err := x.read(res)
	if err != nil || x.left {
		return err
	}
	x.emit(reply)
	return nil
}

// again prepares another attempt after an answer that broke off before it yielded
// anything. It does not retry requests that the SDK has stopped retrying.
func (x *exchange) again(err error) bool {
	var failed *converse.ModelError
	if x.failed != nil || x.spoken || x.attempts > x.m.opts.MaxRetries ||
		!errors.As(err, &failed) || !failed.Retryable {
		return false
	}
	wait := backoff(x.attempts)
	if !x.emit(converse.Retry{Attempt: x.attempts, Wait: wait, Err: failed}) {
		return false
	}
	x.watch.stop()
	select {
	case <-time.After(wait):
		return true
	case <-x.ctx.Done():
		return false
	}
}

// withoutUsage reports whether the server rejected stream_options, which the model then
// no longer sends. If the caller sets stream_options explicitly, the error says so.
func (x *exchange) withoutUsage(err error) bool {
	failed, ok := errors.AsType[*converse.ModelError](err)
	if !ok || failed.Status != http.StatusBadRequest && failed.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(failed.Message, "stream_options") && !strings.Contains(failed.Message, "include_usage") {
		return false
	}
	if x.m.opts.NoStreamUsage || x.m.opts.NoStream || x.m.opts.extra("stream_options") || x.m.usageRefused.Swap(true) {
		failed.Message += " [the server refuses stream_options: set model.stream_usage = false, Options.NoStreamUsage, and give none in extra_body]"
		return false
	}
	return x.emit(converse.Retry{Attempt: x.attempts, Err: failed})
}

// emit yields an event unless the caller has left the loop, and reports whether the
// caller continues. When the caller leaves, the exchange is cancelled.
func (x *exchange) emit(event converse.ModelEvent) bool {
	if !x.left && !x.yield(event, nil) {
		x.left = true
		x.cancel(errLeft)
	}
	return !x.left
}

func (x *exchange) delta(d converse.Delta) {
	x.spoken = true
	x.emit(d)
}

// observe is middleware between the SDK's retries and the connection. The SDK calls it
// for each attempt, on the goroutine of the exchange, and does not report failed attempts
// itself.
func (x *exchange) observe(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	x.attempts++
	x.failed = nil
	x.lent.lend(req)
	x.inject(req)
	x.watch.within(x.m.opts.ResponseTimeout)
	res, err := next(req)
	x.watch.stop()
	if err == nil && res.StatusCode >= 200 && res.StatusCode < 300 || x.ctx.Err() != nil {
		return res, err
	}
	if err != nil {
		x.failed = x.m.unreachable(err)
	} else {
		x.watch.within(x.m.opts.IdleTimeout)
		begin, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		x.watch.stop()
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(begin)) // the SDK reads it without a limit
		x.failed = x.m.failure(res, begin)
	}
	if wait, again := x.sdkWait(res); again {
		x.emit(converse.Retry{Attempt: x.attempts, Wait: wait, Err: x.failed})
	}
	return res, err
}
