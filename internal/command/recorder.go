// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"sync"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// maxSpans bounds the spans kept for one turn.
const maxSpans = 2000

// recorder keeps ended spans until they are taken. It is a span processor; all methods
// may be called concurrently.
type recorder struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
	more  int // spans that were not kept
}

func (r *recorder) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (r *recorder) OnEnd(span sdk.ReadOnlySpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spans) == maxSpans {
		r.more++
		return
	}
	r.spans = append(r.spans, span)
}

func (r *recorder) Shutdown(context.Context) error   { return nil }
func (r *recorder) ForceFlush(context.Context) error { return nil }

// take returns the spans that ended since the last call.
func (r *recorder) take() (spans []sdk.ReadOnlySpan, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, more = r.spans, r.more
	r.spans, r.more = nil, 0
	return spans, more
}
