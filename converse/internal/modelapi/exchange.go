// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker/telemetry"
)

// API is one request to one API of a server.
type API interface {
	// Encode returns the body of the request. It is called before the first attempt, and
	// again after Amend has returned true.
	Encode() ([]byte, *BodyRef, error)
	// Post sends a body once, through the provider's SDK. The middleware runs between the
	// SDK and the connection.
	Post(ctx context.Context, body []byte, middleware Middleware) (*http.Response, error)
	// Read reads an answer and passes on its deltas. Its error is one of [Exchange.Broken]
	// and the functions built on it, or [ErrContinue].
	Read(x *Exchange, res *http.Response) (converse.Reply, error)
	// Amend reports whether the request was changed because of an error, so that another
	// attempt can succeed.
	Amend(x *Exchange, failed *converse.ModelError) bool
}

// ErrContinue is the error of [API.Read] for an answer that needs another request, which
// Encode then returns.
var ErrContinue = errors.New("the answer continues with another request")

// Middleware is the type of middleware in the SDKs of OpenAI and Anthropic.
type Middleware = func(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Exchange is one running exchange, on the goroutine of the caller's loop.
type Exchange struct {
	server *Server
	yield  func(converse.ModelEvent, error) bool
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *watch
	body   *BodyRef
	sent   []byte // the body of the last request

	attempts int            // requests sent so far
	amended  int            // how many of them Amend has changed afterwards
	spoken   bool           // a delta has been yielded
	ran      string         // the tool that the server has run in this part of the answer; see State
	ranFirst string         // the same of the parts before, which another request continues
	left     bool           // the caller has left the loop
	paid     canister.Usage // of the parts of the answer that were read whole
	// failed is the error of the last request, and wait the time before another; nil if it
	// succeeded.
	failed *converse.ModelError
	wait   time.Duration
	// mayBeOver is set if the wait for the end of a response may have ended ctx.
	mayBeOver bool
}

// Exchange runs one exchange, from the request to the reply, and yields its events; see
// [converse.Model].
func (s *Server) Exchange(ctx context.Context, api API, yield func(converse.ModelEvent, error) bool) {
	body, ref, err := api.Encode()
	if err != nil {
		yield(nil, err)
		return
	}
	x := &Exchange{server: s, yield: yield, body: ref}
	x.renew(ctx)
	defer func() {
		x.watch.stop()
		x.cancel(nil)
	}()
	for {
		x.sent = body
		err := x.attempt(api, body)
		if err == nil || x.left {
			return
		}
		if x.mayBeOver {
			x.watch.stop()
			x.cancel(nil)
			x.renew(ctx)
		}
		if err == ErrContinue && ctx.Err() == nil {
			x.ranFirst = cmp.Or(x.ran, x.ranFirst)
			x.attempts, x.amended, x.spoken, x.ran = 0, 0, false, "" // each part of an answer may be retried
			if body, x.body, err = api.Encode(); err == nil {
				continue
			}
		}
		failed, _ := errors.AsType[*converse.ModelError](err)
		if s.ended(ctx, x.ctx) == nil {
			if failed != nil && !x.spoken && x.ran == "" && api.Amend(x, failed) {
				x.amended++
				if body, x.body, err = api.Encode(); err == nil {
					continue
				}
			} else if x.again(failed) {
				continue
			}
		}
		if ended := s.ended(ctx, x.ctx); ended != nil { // also during the wait for another attempt
			err = ended
		}
		if failed, ok := errors.AsType[*converse.ModelError](err); ok {
			x.complete(failed)
		}
		if !x.left {
			yield(nil, err)
		}
		return
	}
}

// complete adds the usage and the tool that has run to the error of the exchange.
func (x *Exchange) complete(failed *converse.ModelError) {
	if !x.spoken && x.paid != (canister.Usage{}) {
		failed.Usage = &x.paid
	}
	if ran := cmp.Or(x.ran, x.ranFirst); ran != "" {
		failed.Ran = x.server.Redact(textcut.Bytes(ran, 100))
		if failed.Retryable {
			failed.Retryable = false
			failed.Message += fmt.Sprintf("; the request is not sent again, because the server has run the tool %q", failed.Ran)
		}
	}
}

// renew gives the exchange a context of its own, which ends with ctx at the latest.
func (x *Exchange) renew(ctx context.Context) {
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.watch, x.mayBeOver = &watch{end: x.cancel}, false
}

// attempt sends the request once and reads the answer.
func (x *Exchange) attempt(api API, body []byte) error {
	x.failed = nil
	res, err := api.Post(x.ctx, body, x.observe)
	if res != nil {
		defer res.Body.Close()
	}
	switch {
	case x.failed != nil:
		return x.failed
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	case err != nil:
		failed := x.server.unreachable(err)
		failed.Retryable = false // nothing was sent, because an option of the SDK failed
		return failed
	}
	reply, err := api.Read(x, res)
	if err != nil || x.left {
		return err
	}
	x.Emit(reply)
	return nil
}

// again reports and waits for another attempt, after a request that failed or an answer
// that broke off before it yielded anything. It returns false if there is none.
func (x *Exchange) again(failed *converse.ModelError) bool {
	if failed == nil || !failed.Retryable || x.spoken || x.ran != "" || x.attempts-x.amended > x.server.MaxRetries || x.wait > maxAskedWait {
		return false
	}
	if !x.Emit(converse.Retry{Attempt: x.attempts, Wait: x.wait, Err: failed}) {
		return false
	}
	x.watch.stop()
	select {
	case <-time.After(x.wait):
		return true
	case <-x.ctx.Done():
		return false
	}
}

// Emit yields an event unless the caller has left the loop, and reports whether the caller
// continues. When the caller leaves, the exchange is cancelled.
func (x *Exchange) Emit(event converse.ModelEvent) bool {
	if !x.left && !x.yield(event, nil) {
		x.left = true
		x.cancel(errLeft)
	}
	return !x.left
}

// Delta yields a piece of the answer. After the first, the exchange is not repeated.
func (x *Exchange) Delta(d converse.Delta) {
	x.spoken = true
	x.Emit(d)
}

// Paid sets the tokens of the parts of the answer that were read whole. If a later part
// fails, its error reports them.
func (x *Exchange) Paid(usage canister.Usage) { x.paid = usage }

// Left reports whether the caller has left the loop.
func (x *Exchange) Left() bool { return x.left }

// Sent returns the body of the last request, until Encode is called again.
func (x *Exchange) Sent() []byte { return x.sent }

// Attempts returns how many requests were sent so far.
func (x *Exchange) Attempts() int { return x.attempts }

// observe is middleware that runs for each attempt, on the goroutine of the exchange. It
// reads the response if it reports a failure.
func (x *Exchange) observe(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	x.attempts++
	x.failed, x.wait = nil, backoff(x.attempts-x.amended)
	x.body.count(req)
	if x.server.TraceHeaders {
		req.Header = req.Header.Clone() // which exchanges may share
		telemetry.Inject(req.Context(), carrier{req.Header})
	}
	x.watch.within(x.server.ResponseTimeout)
	res, err := next(req)
	x.watch.stop()
	if err == nil && res.StatusCode >= 200 && res.StatusCode < 300 || x.ctx.Err() != nil {
		return res, err
	}
	if err != nil {
		x.failed = x.server.unreachable(err)
	} else {
		x.watch.within(x.server.IdleTimeout)
		begin, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		x.watch.stop()
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(begin)) // the SDK reads it without a limit
		x.failed = x.server.failure(res, begin)
		x.heed(res, x.failed)
	}
	return res, err
}

// heed sets the wait before another attempt to the one that a server asks for.
func (x *Exchange) heed(res *http.Response, failed *converse.ModelError) {
	if wait, asked := askedWait(res.Header, failed.Message, time.Now()); asked {
		x.wait = wait
	}
}

// carrier lets a propagator write headers.
type carrier struct{ http.Header }

// Keys returns the names of the headers.
func (c carrier) Keys() []string {
	var names []string
	for name := range c.Header {
		names = append(names, name)
	}
	return names
}
