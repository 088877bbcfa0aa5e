// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// endTrace ends the span of the work. It runs last.
func (t *turn) endTrace() {
	t.auditor.spans.End()
	if t.agent == nil {
		return
	}
	result := t.spent.Result(string(t.progress.reason))
	if t.progress.err != nil {
		result.Fault = t.guard.fault(t.progress.err)
	}
	t.agent.End(result)
}

// noteTrace records the trace of an exchange in the message's metadata, if there is one.
func noteTrace(ctx context.Context, message canister.Assistant) canister.Assistant {
	message.Metadata = notes.WithTrace(message.Metadata, telemetry.TraceID(ctx))
	return message
}

// exchangeSpan is an exchange with the model and its outcome, for the traces. A chain of models
// has a span for each model that it asks.
type exchangeSpan struct {
	asker   *asker
	request *Request
	work    string              // identifies an exchange outside the conversation; empty for its own
	info    telemetry.ModelInfo // of the model that is asked
	chat    *telemetry.Chat
	reply   *Reply              // set even if it cannot be used
	added   []canister.Canister // of the reply, for the history; nil if it cannot be used
	err     error
}

// newExchange returns the span of an exchange, which begins when its events are read. The
// caller must end it with [exchangeSpan.end].
func (a *asker) newExchange(request *Request, work string) *exchangeSpan {
	return &exchangeSpan{asker: a, request: request, work: work, err: errPanicked}
}

// events asks a model, or the models of a chain, within the budget.
func (s *exchangeSpan) events(ctx context.Context, model Model, info telemetry.ModelInfo) iter.Seq2[ModelEvent, error] {
	chain, ok := model.(*ModelChain)
	if !ok {
		return s.asker.pay(s.start(ctx, info, 0), s, model, info, false)
	}
	return func(yield func(ModelEvent, error) bool) {
		chain.walk(ctx, func(l *link) iter.Seq2[ModelEvent, error] {
			return s.asker.pay(s.start(ctx, l.info, l.position), s, l.model, l.info, true)
		}, yield)
	}
}

// start begins the span for a model, and ends the span of the previous model.
func (s *exchangeSpan) start(ctx context.Context, info telemetry.ModelInfo, position int) context.Context {
	s.endChat()
	if s.info = info; !s.request.Purpose.Answers() { // see Purpose.Answers
		s.info.JSON, s.info.Stop = false, nil
	}
	ctx, s.chat = telemetry.StartChat(ctx, telemetry.ChatRequest{
		Model:       s.info,
		Fallback:    position,
		MaxTokens:   s.request.MaxTokens,
		Temperature: s.request.Temperature,
		Stop:        s.request.Stop,
		History:     s.request.History,
		Tools:       s.request.Tools.Definitions,
	})
	s.err = errPanicked
	return ctx
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

// moved records that the model is unavailable and another one is asked.
func (s *exchangeSpan) moved(ctx context.Context, to Fallback) {
	var cause string
	if s.err = to.Err; s.err != nil {
		cause = s.asker.guard.logged(s.err.Error())
	}
	logevent.Log(ctx, s.asker.guard.log, zapcore.WarnLevel, "a model is unavailable, and the next one of the chain is asked", logevent.ModelMoved,
		zap.String("from", to.From), zap.String("to", to.To), zap.String("error", cause))
}

func (s *exchangeSpan) end() {
	if message, ended := s.endChat(); ended {
		s.asker.spent.Exchange(message)
	}
}

// endChat ends the span of the model that was asked last, if there is one, and returns
// the model's message.
func (s *exchangeSpan) endChat() (canister.Assistant, bool) {
	if s.chat == nil {
		return canister.Assistant{}, false
	}
	var result telemetry.ChatResult
	if s.reply != nil {
		result.Message, result.Invocations = s.reply.Message, s.reply.Invocations
	}
	if s.err != nil {
		result.Fault = s.asker.guard.fault(s.err)
	}
	s.chat.End(result)
	s.chat = nil
	return result.Message, true
}

// startTool begins the span of a call, or continues it.
func (a *auditor) startTool(ctx context.Context, c *call, arguments json.RawMessage) (context.Context, *telemetry.Tool) {
	said := telemetry.ToolCall{Name: c.invocation.Name, Call: c.invocation.ID, Arguments: arguments, Unknown: c.tool == nil}
	if c.tool != nil {
		said.Ensemble, said.Description = c.tool.Ensemble().Name(), c.tool.Definition().Description
	}
	return a.spans.Start(ctx, said, c.invocation.Parent)
}

// fault converts an error of the runtime for the traces.
func (g *guard) fault(err error) *telemetry.Fault {
	return &telemetry.Fault{Type: faultType(err), Message: g.clean.Text(err.Error())}
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
