// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"context"
	"sync"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// maxSpans bounds the spans kept for one turn.
const maxSpans = 2000

// Recorder keeps ended spans until they are taken. It is a span processor; all methods
// may be called concurrently.
type Recorder struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
	more  int // spans that were not kept
}

func (r *Recorder) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (r *Recorder) OnEnd(span sdk.ReadOnlySpan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spans) == maxSpans {
		r.more++
		return
	}
	r.spans = append(r.spans, span)
}

func (r *Recorder) Shutdown(context.Context) error   { return nil }
func (r *Recorder) ForceFlush(context.Context) error { return nil }

// Take returns the spans that ended since the last call.
func (r *Recorder) Take() (spans []sdk.ReadOnlySpan, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, more = r.spans, r.more
	r.spans, r.more = nil, 0
	return spans, more
}
