// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/invoker"
)

type askFunc = func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)

// person returns what puts the questions of a call to the person; nil if nobody
// can be asked. No question outlives callCtx.
func (b *batch) person(callCtx context.Context, c *call) askFunc {
	ask := b.opts.Ask
	if outer := invoker.CallFrom(b.turn.ctx); ask == nil && outer != nil && outer.Person != nil {
		ask = outer.Ask
	}
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		if question == nil {
			return nil, invoker.Failf(invoker.Internal, "The tool asked the person nothing.")
		}
		ctx, cancel := during(ctx, callCtx)
		defer cancel()
		asked := *question
		if asked.Server == "" {
			asked.Server = c.invocation.Name
		}
		return b.put(ctx, ask, &asked)
	}
}

// put calls the embedder's function, which may panic, and does not wait for it
// longer than ctx lasts.
func (b *batch) put(ctx context.Context, ask askFunc, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	type answer struct {
		*invoker.ElicitResult
		error
	}
	answers := make(chan answer, 1)
	b.strays.Go(func() {
		reached := answer{error: errors.New("the function that asks the person did not return")}
		defer func() {
			if value := recover(); value != nil {
				reached = answer{error: fmt.Errorf("the function that asks the person panicked: %v", value)}
			}
			answers <- reached
		}()
		result, err := ask(ctx, question)
		if err == nil && result == nil {
			err = errors.New("the function that asks the person returned nothing")
		}
		reached = answer{result, err}
	})
	select {
	case reached := <-answers:
		return reached.ElicitResult, reached.error
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// during returns ctx, which now ends no later than the other.
func during(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if other.Err() != nil {
		cancel(context.Cause(other)) // at once: AfterFunc takes its time
	}
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() { stop(); cancel(nil) }
}
