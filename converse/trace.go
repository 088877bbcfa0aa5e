// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// spending is the use of the model and tools by a piece of work, including its tools'
// exchanges.
type spending struct {
	mu          sync.Mutex
	exchanges   int // begun, including failed ones
	invocations int
	usage       canister.Usage
	finish      canister.Finish // of the latest exchange
}

func (s *spending) exchange(message canister.Assistant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	if message.Usage != nil {
		s.usage = s.usage.Add(*message.Usage)
	}
	if message.Finish != "" {
		s.finish = message.Finish
	}
}

func (s *spending) invocation() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invocations++
}

// endTrace ends the span of the work. It runs last.
func (t *turn) endTrace() {
	if t.agent == nil {
		return
	}
	t.spent.mu.Lock()
	result := telemetry.AgentResult{
		Reason:      string(t.progress.reason),
		Usage:       t.spent.usage,
		Exchanges:   t.spent.exchanges,
		Invocations: t.spent.invocations,
		Finish:      string(t.spent.finish),
	}
	t.spent.mu.Unlock()
	if t.progress.err != nil {
		result.Fault = t.guard.fault(t.progress.err)
	}
	t.agent.End(result)
}

// exchangeSpan is an exchange with the model for the traces.
type exchangeSpan struct {
	asker *asker
	info  telemetry.ModelInfo
	chat  *telemetry.Chat
	reply *Reply // set even if it cannot be used
	err   error
}

// startChat begins the span of an exchange. The caller must end it with [exchangeSpan.end].
func (a *asker) startChat(ctx context.Context, info telemetry.ModelInfo, request *Request) (context.Context, exchangeSpan) {
	if !request.Purpose.Answers() { // see Purpose.Answers
		info.JSON, info.Stop = false, nil
	}
	ctx, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{
		Model:       info,
		MaxTokens:   request.MaxTokens,
		Temperature: request.Temperature,
		Stop:        request.Stop,
		History:     request.History,
		Tools:       request.Tools.Definitions,
	})
	return ctx, exchangeSpan{asker: a, info: info, chat: chat, err: errPanicked}
}

// streamed records a piece of the answer.
func (s *exchangeSpan) streamed() {
	if !s.info.Whole {
		s.chat.Streamed()
	}
}

// retried records a failed attempt.
func (s *exchangeSpan) retried(retry Retry) {
	if s.chat != nil && retry.Err != nil {
		s.chat.Retried(retry.Attempt, retry.Wait, *s.asker.guard.fault(retry.Err))
	}
}

func (s *exchangeSpan) end() {
	if s.chat == nil {
		return
	}
	var result telemetry.ChatResult
	if s.reply != nil {
		result.Message, result.Invocations = s.reply.Message, s.reply.Invocations
	}
	if s.err != nil {
		result.Fault = s.asker.guard.fault(s.err)
	}
	s.chat.End(result)
	s.asker.spent.exchange(result.Message)
}

// startTool begins the span of an invocation.
func startTool(ctx context.Context, c *call, arguments json.RawMessage) (context.Context, *telemetry.Tool) {
	said := telemetry.ToolCall{Name: c.invocation.Name, Call: c.invocation.ID, Arguments: arguments, Unknown: c.tool == nil}
	if c.tool != nil {
		said.Ensemble, said.Description = c.tool.Ensemble().Name(), c.tool.Definition().Description
	}
	return telemetry.StartTool(ctx, said)
}

// endTool ends the span with the result that the model receives. The tool's own content
// of a failure counts as a result too.
func endTool(span *telemetry.Tool, result *canister.Result, failure *invoker.Failure) {
	if span == nil {
		return
	}
	var fault *telemetry.Fault
	if result.Failed() {
		fault = &telemetry.Fault{Type: result.Code}
		if failure != nil && len(failure.Content) > 0 {
			fault.Said = result.Content
		} else {
			fault.Message = canister.TextOf(result.Content)
		}
	}
	span.End(result.Content, fault)
}

// fault converts an error of the runtime for the traces.
func (g *guard) fault(err error) *telemetry.Fault {
	return &telemetry.Fault{Type: faultType(err), Message: g.clean.text(err.Error())}
}

// faultType returns the error.type of an error; see the package comment.
func faultType(err error) string {
	var model *ModelError
	var tool *invoker.Failure
	switch {
	case errors.As(err, &model) && model.Status >= 300 && model.Status < 600:
		return strconv.Itoa(model.Status)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimeLimit):
		return string(invoker.Timeout)
	case errors.Is(err, context.Canceled), errors.Is(err, errLeft), errors.Is(err, ErrSuspended):
		return string(invoker.Canceled)
	case model != nil && (model.Retryable || model.Status == 0 && model.Err != nil):
		return string(invoker.Unavailable)
	case model != nil && model.Code != "":
		return string(invoker.ExecutionFailed)
	case model != nil:
		return string(invoker.Protocol)
	case errors.As(err, &tool):
		return string(tool.Code)
	}
	return string(invoker.Internal)
}
