// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/protobuf/proto"
)

// effect says whether a request can have side effects.
type effect bool

const (
	harmless effect = false // no side effects
	lasting  effect = true  // the side effects of the tool
)

// ask makes one RPC. Its error is a failure with the gRPC status in its chain, or the
// error of ctx. It returns soon after ctx or the connection ends.
func (c *connection) ask(ctx context.Context, method string, request, response proto.Message, what effect) error {
	if err := ctx.Err(); err != nil {
		return interrupted(err, false)
	}
	if err := c.enter(); err != nil {
		return c.gone(err, false)
	}
	defer c.leave()
	if limit := c.source.options.MaxMessage; proto.Size(request) > limit {
		return invoker.Failf(invoker.InvalidArguments, "The arguments are too large: a request has at most %d bytes.", limit)
	}
	inner, r := withRequest(ctx)
	inner, err := c.source.outgoing(inner, what == lasting)
	if err != nil {
		return err
	}
	err = c.conn.Invoke(inner, "/"+c.service+"/"+method, request, response)
	if answer, ok := response.(*toolspb.ToolCallResponse); ok && err == nil && !answer.GetSuccess() {
		clean := c.source.options.cleaner(inner)
		answer.ErrorMessage = clean(answer.ErrorMessage)
		if json.Valid([]byte(answer.FailureJson)) {
			answer.FailureJson = string(redact.JSON(json.RawMessage(answer.FailureJson), clean))
		}
	}
	switch left := r.left.Load(); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return interrupted(ctx.Err(), left)
	case c.life.Err() != nil:
		return c.gone(err, left && what == lasting)
	default:
		return failureOf(c.source.options.cleaned(inner, err), exchange{left: left, answered: r.answered.Load(), said: r.said.Load(), what: what, most: c.source.options.MaxMessage})
	}
}

// call calls a tool.
func (c *connection) call(ctx context.Context, tool string, call *invoker.Call) (invoker.Output, error) {
	ctx, seen := telemetry.StartRequest(ctx, telemetry.Call{Method: "tools/call", Tool: tool, Arguments: call.Arguments, RPC: c.service + "/CallTool"}, c.peer)
	request := &toolspb.ToolCallRequest{
		ToolName:       tool,
		ArgumentsJson:  string(call.Arguments),
		TraceId:        telemetry.TraceID(ctx),
		CallerAgentId:  c.source.options.Caller,
		IdempotencyKey: call.ID,
	}
	if request.ArgumentsJson == "" {
		request.ArgumentsJson = "{}"
	}
	response := new(toolspb.ToolCallResponse)
	if err := c.ask(ctx, "CallTool", request, response, lasting); err != nil {
		seen.End(nil, failedRequest(seen, err))
		return invoker.Output{}, err
	}
	output, failure := outputOf(response)
	if failure != nil {
		seen.End(failure.Content, toolFailed(failure))
		return invoker.Output{}, failure
	}
	seen.End(output.Content, nil)
	return output, nil
}
