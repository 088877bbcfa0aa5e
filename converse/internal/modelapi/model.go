// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Model runs the exchanges of a model. It must not change once it is in use; its methods
// may be called concurrently.
type Model struct {
	Server *Server
	// Info describes the model.
	Info telemetry.ModelInfo
	// NewRequest returns a request to the API.
	NewRequest func(ctx context.Context, request *converse.Request, t *Transcript) API
}

// Describe returns the description of the model.
func (m *Model) Describe() telemetry.ModelInfo { return m.Info }

// Exchange sends a request and yields the answer; see [converse.Model].
func (m *Model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		m.exchange(ctx, request, new(Transcript), yield)
	}
}

func (m *Model) exchange(ctx context.Context, request *converse.Request, t *Transcript, yield func(converse.ModelEvent, error) bool) {
	if request == nil || request.NewID == nil {
		yield(nil, fmt.Errorf("%s: the request, or its NewID, is nil", m.Server.Package))
		return
	}
	m.Server.Exchange(ctx, m.NewRequest(ctx, request, t), yield)
}

// Bind returns a model for one conversation, whose exchanges share a transcript.
func (m *Model) Bind() converse.Model { return &bound{model: m} }

// bound is a [Model] for one conversation.
type bound struct {
	model      *Model
	busy       atomic.Bool
	transcript Transcript // belongs to the exchange that holds busy
}

// Describe describes the underlying model.
func (b *bound) Describe() telemetry.ModelInfo { return b.model.Info }

// Exchange is like [Model.Exchange] but reuses the transcript. If two exchanges run at the
// same time, which the contract of Bind does not require, one runs without the transcript.
func (b *bound) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		if !b.busy.CompareAndSwap(false, true) {
			b.model.exchange(ctx, request, new(Transcript), yield)
			return
		}
		defer b.busy.Store(false)
		b.model.exchange(ctx, request, &b.transcript, yield)
	}
}
