// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"iter"
	"time"

	"github.com/consort-go/consort/converse/history"
)

// behind is a store with a clock that is late.
type behind struct {
	*history.Memory
	by time.Duration
}

// List has the times that the engine asks for on the engine's clock, and finds by its own.
func (b behind) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	if !f.Since.IsZero() {
		f.Since = f.Since.Add(b.by)
	}
	if !f.Until.IsZero() {
		f.Until = f.Until.Add(b.by)
	}
	return b.Memory.List(ctx, f)
}
