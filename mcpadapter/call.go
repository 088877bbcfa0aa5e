// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/decode"
	"github.com/consort-go/consort/mcpadapter/internal/progress"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// IdempotencyKey is the member of a request's _meta that carries the ID of the
// call ([invoker.Call].ID). It is the same on every attempt, so that a server can tell
// a repetition from a second call. (Names in _meta: MCP 2025-11-25, basic § General
// fields.)
const IdempotencyKey = "io.github.consort-go/idempotency-key"

// FailureKey is the member of a result's _meta that describes a failed call, in the
// JSON form of invoker.Failure.Structured, for clients that know it. The text of such a
// result is meant for models.
const FailureKey = wire.FailureKey

// requester makes the requests of a connection, and says why one failed.
type requester struct {
	options     *ClientOptions
	log         *zap.Logger
	link        link
	interceptor *interceptor
	life        *lifetime
	needs       []string // names of the trusted values that go into headers
}

// request runs one request of the SDK. send may return late, or not before the link is
// killed, but request returns soon after ctx or the connection ends. Progress reports
// are delivered here, all of them before request returns.
func (r *requester) request(ctx context.Context, x *exchange, send func(context.Context) error) error {
	// The SDK reads the stream beyond its answer until this context ends.
	sending, cancel := context.WithCancel(withExchange(ctx, x))
	defer cancel()
	defer r.interceptor.forget(x)
	defer context.AfterFunc(r.life.ctx, cancel)()
	returned := make(chan error, 1)
	if !r.life.start(func() { returned <- contained(func() error { return send(sending) }) }) {
		return errClosed
	}
	return r.await(ctx, x, returned)
}

// contained runs a function of the SDK, which panics if some members of an answer are null.
func contained(f func() error) (err error) {
	panicked := contain.Call("the MCP SDK", func() { err = f() })
	return cmp.Or(panicked, err)
}

// await waits until a request has returned, or ctx or the connection has ended, and delivers
// its progress reports meanwhile.
func (r *requester) await(ctx context.Context, x *exchange, returned <-chan error) error {
	var reports <-chan struct{}
	if x.progress != nil {
		reports = x.progress.Filled
		defer x.progress.Deliver(x.call)
	}
	for {
		select {
		case <-reports:
			x.progress.Deliver(x.call)
		case err := <-returned:
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			case x.ending.Load() != nil:
				err = *x.ending.Load()
			case errors.Is(err, context.Canceled) && r.life.ctx.Err() != nil:
				err = errClosed
			}
			r.awaitLoss(ctx)
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-r.life.ctx.Done():
			if own := x.ending.Load(); own != nil {
				return *own
			}
			return errClosed
		}
	}
}

// awaitLoss waits until a connection whose link has ended is reported as lost, so that
// the failure of a request is not returned before it. Watch closes lost soon.
func (r *requester) awaitLoss(ctx context.Context) {
	select {
	case <-r.interceptor.broken:
	default:
		return
	}
	select {
	case <-r.life.lost:
	case <-ctx.Done():
	}
}

// call calls a tool (MCP 2025-11-25, server/tools § Calling Tools).
func (c *connection) call(ctx context.Context, call *invoker.Call, tool string) (invoker.Output, error) {
	x := &exchange{
		call: call, roots: wire.RootsAsker(ctx), personal: true, origin: access.OriginFrom(ctx), show: emptyResult, about: telemetry.Call{Tool: tool, Arguments: call.Arguments},
	}
	defer c.interceptor.forget(x)
	if call.Progress != nil {
		x.progress, x.token = progress.NewQueue(), "call-"+strconv.FormatInt(c.serial.Add(1), 10)
		c.interceptor.listen(x)
	}
	err := c.send(ctx, x, tool)
	// An answer that arrived just before the connection was lost counts. After we gave
	// up the call it does not: it may be the answer to the cancellation.
	if result := x.result(); err == nil || result != nil && ctx.Err() == nil && !c.life.isClosed() {
		out, failure := decode.Output(result)
		x.ended(out.Content, returned(failure))
		if failure != nil {
			return invoker.Output{}, failure
		}
		return out, nil
	}
	if c.interceptor.forgotten(err) {
		c.life.start(c.checkSession)
	}
	return invoker.Output{}, x.failed(c.requests.failure(err, x, false))
}

// ownMeta returns the members of _meta that differ between calls, sorted by name.
func ownMeta(options *ClientOptions, modern bool, x *exchange) []wire.MetaMember {
	members := make([]wire.MetaMember, 0, 4)
	if x.call.ID != "" {
		members = append(members, wire.MetaMember{Name: IdempotencyKey, Text: x.call.ID})
	}
	if modern && options.SampleCalls {
		members = append(members, wire.MetaMember{Name: mcp.MetaKeyClientCapabilities, Value: options.capabilitiesFor(x.call)})
	}
	if modern && options.LogLevel != "" {
		members = append(members, wire.MetaMember{Name: mcp.MetaKeyLogLevel, Text: options.LogLevel})
	}
	if x.token != "" {
		members = append(members, wire.MetaMember{Name: "progressToken", Text: x.token})
	}
	return members
}

// emptyResult is the result of a tool that the SDK gets.
var emptyResult = placeholder(`{"content":[]}`)

// placeholder returns a function that always shows the SDK the same text.
func placeholder(text string) func(json.RawMessage) json.RawMessage {
	return func(json.RawMessage) json.RawMessage { return json.RawMessage(text) }
}
