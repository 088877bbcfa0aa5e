// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Chat is an exchange with a model.
type Chat struct {
	operation
	first time.Time
}

// ChatRequest is the input of a model.
type ChatRequest struct {
	Model       ModelInfo
	Fallback    int      // the model's place among the fallbacks, from 1; 0 for the first model
	MaxTokens   int64    // 0 if not set
	Temperature *float64 // nil if not set
	Stop        []string
	// History and Tools are only recorded with Options.Content.
	History []canister.Canister
	Tools   []*invoker.Definition
}

// ChatResult is the answer of a model, or its failure.
type ChatResult struct {
	Message     canister.Assistant
	Invocations []canister.Invocation
	// Fault is the failure, if there was one; Message is then the part of the answer
	// that was received and paid for, if any.
	Fault *Fault
}

// StartChat starts an exchange. It returns a nil *Chat, whose methods do nothing,
// if ctx carries no Telemetry.
func StartChat(ctx context.Context, request ChatRequest) (context.Context, *Chat) {
	t := busy(ctx)
	if t == nil {
		return ctx, nil
	}
	name := "chat"
	if request.Model.Name != "" {
		name += " " + request.Model.Name
	}
	more := append(conversationOf(ctx), request.settings()...)
	if request.Fallback > 0 {
		more = append(more, keyFallback.Int(request.Fallback))
	}
	if !request.Model.Whole {
		more = append(more, keyStream.Bool(true))
	}
	c := &Chat{operation: t.start(ctx, name, trace.SpanKindClient, request.Model.attributes(), more...)}
	c.recordRequest(request)
	return c.ctx, c
}

// settings returns the attributes for the parameters of the request.
func (r *ChatRequest) settings() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 8)
	m := &r.Model
	if m.JSON {
		list = append(list, keyOutputType.String("json"))
	}
	if most := cmp.Or(r.MaxTokens, m.MaxTokens); most > 0 {
		if m.MaxTokens > 0 {
			most = min(most, m.MaxTokens)
		}
		list = append(list, keyMaxTokens.Int64(most))
	}
	if temperature := cmp.Or(r.Temperature, m.Temperature); temperature != nil {
		list = append(list, keyTemperature.Float64(*temperature))
	}
	if m.TopP != nil {
		list = append(list, keyTopP.Float64(*m.TopP))
	}
	if m.Seed != nil {
		list = append(list, keySeed.Int64(*m.Seed))
	}
	stop := r.Stop
	if len(stop) == 0 {
		stop = m.Stop
	}
	if len(stop) > 0 {
		list = append(list, keyStop.StringSlice(stop))
	}
	return list
}

// Retried records that an attempt, counted from 1, failed, and that another one
// follows after wait.
func (c *Chat) Retried(attempt int, wait time.Duration, fault Fault) {
	if c == nil || !c.recording {
		return
	}
	c.onSpan(func(span trace.Span) {
		span.AddEvent(retried, trace.WithAttributes(keyAttempt.Int(attempt), keyWait.Float64(wait.Seconds()),
			keyErrorType.String(bounded(fault.kind(), maxName)), keyErrorText.String(c.text(fault.Message))))
	})
}

// Streamed records that a piece of the answer has arrived; only the first call
// counts. It must not be called concurrently with itself or End.
func (c *Chat) Streamed() {
	if c != nil && c.first.IsZero() {
		c.first = time.Now()
	}
}

// End ends the exchange. Only the first call counts.
func (c *Chat) End(result ChatResult) {
	if c == nil || c.ended {
		return
	}
	if model := result.Message.Model; model != "" {
		c.measure(keyResponseModel.String(c.text(model)))
	}
	if finish := result.Message.Finish; finish != "" {
		c.set(finishReason(canister.Finish(c.text(string(finish)))))
	}
	made := &c.telemetry.instruments
	if u := result.Message.Usage; u != nil {
		c.set(usage(*u)...)
		if u.Reasoning > 0 {
			c.set(keyReasoning.Int64(u.Reasoning))
		}
		c.count(made.tokens, u.Input, "input")
		c.count(made.tokens, u.Output, "output")
	}
	if !c.first.IsZero() {
		wait := c.first.Sub(c.began).Seconds()
		c.set(keyFirstChunk.Float64(wait))
		c.telemetry.measureSeconds(c.ctx, made.firstChunk, wait, c.alike)
	}
	if result.Fault == nil {
		c.recordAnswer(result)
	}
	c.end(made.chat, result.Fault)
}

// count measures tokens of a type. It ignores negative numbers, which a server
// may report, because they would be subtracted from the sum of others.
func (c *Chat) count(tokens metric.Int64Histogram, n int64, kind string) {
	if n < 0 {
		return
	}
	c.telemetry.guard("an instrument", func() {
		if tokens.Enabled(c.ctx) {
			tokens.Record(c.ctx, n, metric.WithAttributes(append(slices.Clip(c.measured), keyTokenType.String(kind))...))
		}
	})
}

// usage returns the attributes for the tokens used. Tokens read from a cache, or written
// to it, are left out if their number is 0.
func usage(u canister.Usage) []attribute.KeyValue {
	list := []attribute.KeyValue{keyInput.Int64(u.Input), keyOutput.Int64(u.Output)}
	if u.Cached > 0 {
		list = append(list, keyCached.Int64(u.Cached))
	}
	if u.CacheWritten > 0 {
		list = append(list, keyCacheWritten.Int64(u.CacheWritten))
	}
	return list
}

// finishReason returns the attribute for the reason to stop, with the name in the
// conventions if they have one.
func finishReason(finish canister.Finish) attribute.KeyValue {
	return keyFinish.StringSlice([]string{finishName(finish)})
}

func finishName(finish canister.Finish) string {
	if finish == canister.FinishInvocations {
		return "tool_call"
	}
	return bounded(string(finish), maxName)
}
