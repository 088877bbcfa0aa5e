// SPDX-License-Identifier: Apache-2.0

// Package toolspans keeps the spans of calls: of each call that runs, and of those whose
// tools have requested other calls.
package toolspans

import (
	"context"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Spans are the spans of calls whose tools have requested other calls. They stay open
// until such a call has a result or the work ends, so that the spans of the other calls are
// within them. Its methods may be called concurrently. The zero value is ready to use.
type Spans struct {
	mu   sync.Mutex
	open map[string]*telemetry.Tool // by the ID of the invocation
}

// Start begins the span of a call, within that of the invocation parent if it is open. If
// the tool has requested other calls, Start continues its open span. The caller must end
// the span or keep it.
func (s *Spans) Start(ctx context.Context, call telemetry.ToolCall, parent string) (context.Context, *telemetry.Tool) {
	if span := s.take(call.Call); span != nil {
		return span.Within(ctx), span
	}
	return telemetry.StartTool(s.within(ctx, parent), call)
}

// take returns the open span of a call, which the caller must end or keep, or nil.
func (s *Spans) take(invocation string) *telemetry.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	span := s.open[invocation]
	delete(s.open, invocation)
	return span
}

// within returns ctx within the span of the call parent, if it is open.
func (s *Spans) within(ctx context.Context, parent string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[parent].Within(ctx)
}

// Keep keeps the span of an invocation open.
func (s *Spans) Keep(invocation string, span *telemetry.Tool) {
	if span == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]*telemetry.Tool{}
	}
	s.open[invocation] = span
}

// End ends the open spans. Their calls have no result yet.
func (s *Spans) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.open {
		span.End(nil, nil)
	}
	s.open = nil
}

// End ends a span with the result that the model receives. The tool's own content of a
// failure counts as a result too.
func End(span *telemetry.Tool, result *canister.Result, failure *invoker.Failure) {
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
