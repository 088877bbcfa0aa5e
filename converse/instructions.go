// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"slices"

	"github.com/consort-go/consort/converse/internal/instructions"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// introduce adds the instructions of the servers of the offered tools to the history,
// unless the model has them: once, again after a change, and again when a summary has
// replaced them. The document is appended, so that everything before it stays as it was
// sent.
func (t *turn) introduce(o *offer) {
	all := o.instructions()
	if t.over() || len(all) == 0 {
		return
	}
	omitted := func(name string) {
		logevent.Log(t.ctx, t.guard.log, zapcore.WarnLevel, "the instructions of a server were not given to the model", logevent.InstructionsOmitted,
			zap.String("ensemble", name), zap.Int("limit", ensemble.MaxAllInstructions))
	}
	if document, ok := instructions.Document(t.conv.history, all, t.guard.clean, omitted); ok {
		t.append(document)
	}
}

// introduceBefore calls introduce before the message that begins a turn is added, so
// that the instructions do not come between the message and its answer. It waits for
// the servers no longer than the turn may last; openTools reports its errors.
func (t *turn) introduceBefore() {
	if t.over() || t.conv.roster == nil {
		return
	}
	ctx := t.ctx
	if limit := t.opts.Limits.Time; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	catalog, err := t.conv.roster.Catalog(ctx)
	if err != nil {
		return
	}
	o := t.conv.offered
	if o == nil || o.catalog != catalog {
		o = offerOf(catalog, t.conv.origin, t.opts.Limits.Tools)
	}
	t.introduce(o)
}

// instructions returns the instructions of the ensembles whose tools are on offer.
func (o *offer) instructions() []ensemble.Instructions {
	if o == nil || o.catalog == nil {
		return nil
	}
	all := o.catalog.Instructions()
	if len(all) == 0 {
		return nil
	}
	offered := map[string]bool{}
	for _, tool := range o.tools {
		offered[tool.Ensemble().Name()] = true
	}
	return slices.DeleteFunc(all, func(said ensemble.Instructions) bool { return !offered[said.Ensemble] })
}
