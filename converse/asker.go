// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"iter"

	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/tally"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker/telemetry"
)

// asker runs exchanges with models for a piece of work, within its budget.
type asker struct {
	conv    *Conversation
	opts    *Options
	guard   *guard
	account *account
	spent   *tally.Tally
	// counted is the number of tools in the request of the reply countedBy, the last one. Its
	// usage includes them.
	counted   int
	countedBy string
}

// exchangeWith asks a model, which runs on its own goroutine. It yields the model's
// events, one at a time, while the model may be a few deltas ahead, and an error if the model panics or has not returned when
// patience has passed after the end of ctx.
func (a *asker) exchangeWith(ctx context.Context, model Model, request *Request) iter.Seq2[ModelEvent, error] {
	return foreign.Stream(ctx, a.guard.background, "Model.Exchange", a.guard.leave, received, func(ctx context.Context) iter.Seq2[ModelEvent, error] {
		if events := model.Exchange(ctx, request); events != nil {
			return events
		}
		return func(yield func(ModelEvent, error) bool) {
			yield(nil, &ModelError{Message: "Model.Exchange returned no sequence of events"})
		}
	})
}

// received returns an event of a model with its error contained, so that a panic of the
// error's methods does no harm, and whether the model goes on after it at once or has ended.
// [foreign.Stream] contains the error of the exchange.
func received(event ModelEvent) (_ ModelEvent, goesOn, last bool) {
	switch e := event.(type) {
	case Delta:
		return event, true, false
	case Reply:
		return event, false, true
	case Retry:
		e.Err = contain.Error(e.Err)
		return e, false, false
	case Fallback:
		e.Err = contain.Error(e.Err)
		return e, false, false
	}
	return event, false, false
}

// aside runs an exchange outside the conversation and discards its deltas. Work identifies it
// within the conversation, whichever process asks. It calls another for each [Retry] and
// [Fallback].
func (a *asker) aside(ctx context.Context, work string, model Model, info telemetry.ModelInfo, request *Request, another func(ModelEvent)) (*Reply, error) {
	asking := a.newExchange(request, work)
	defer asking.end()
	for event, err := range asking.events(ctx, model, info) {
		if err != nil {
			asking.err = err
			return nil, err
		}
		switch event := event.(type) {
		case Reply:
			asking.reply, asking.err = &event, nil
			return &event, nil
		case Delta:
			asking.streamed()
		case Retry:
			asking.retried(event)
			another(event)
		case Fallback:
			asking.moved(ctx, event)
			another(event)
		}
	}
	asking.err = &ModelError{Message: "the exchange ended without a reply"}
	return nil, asking.err
}
