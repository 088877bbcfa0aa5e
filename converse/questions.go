// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
)

type askFunc = func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)

// questions are the questions that the tool of one call asks the person.
type questions struct {
	batch  *batch
	opts   *Options // of the conversation
	call   *call
	ctx    context.Context // of the call, which the tool calls back from
	giveUp context.CancelCauseFunc

	mu     sync.Mutex
	counts map[string]int // how often each question was asked in this attempt, by its text
	later  *canister.Wait // the wait that ended the call, if one did
	over   bool
}

// person returns the function that asks the person the questions of the call, or nil.
// Questions end with the call.
func (q *questions) person() askFunc {
	ask := q.opts.Ask
	if outer := invoker.CallFrom(q.batch.turn.ctx); ask == nil && outer != nil && outer.Person != nil {
		ask = outer.Ask
	}
	if ask == nil && len(q.call.state.Asked) == 0 {
		return nil
	}
	return func(ctx context.Context, question *invoker.ElicitRequest) (_ *invoker.ElicitResult, err error) {
		defer foreign.Caught("a function that a tool's question needs", &err)
		if question == nil {
			return nil, invoker.Failf(invoker.Internal, "The tool asked the person an empty question.")
		}
		ctx, cancel := foreign.Until(ctx, q.ctx)
		defer cancel()
		asked := *question
		if asked.Server == "" {
			asked.Server = q.call.invocation.Name
		}
		return q.ask(ctx, ask, &asked)
	}
}

// ask finds the answer in the history, or puts the question to the person.
func (q *questions) ask(ctx context.Context, ask askFunc, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	answer, form, err := q.known(question)
	if answer != nil || err != nil {
		return answer, err
	}
	if ask == nil {
		return nil, &invoker.Failure{Code: invoker.Unavailable, Message: "The tool needs an answer from a person, but no person can be asked here.", Cause: invoker.ErrNoPerson}
	}
	result, err := q.batch.callAsk(ctx, ask, question)
	var late *later
	if !errors.As(err, &late) {
		return result, err
	}
	if !q.wait(late.deferral, form, question.Anew) {
		return &invoker.ElicitResult{Action: invoker.Dismiss}, nil
	}
	return nil, errLater
}

// callAsk calls the program's function, which may panic, and waits for it only as long as
// ctx lasts.
func (b *batch) callAsk(ctx context.Context, ask askFunc, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), context.Cause(ctx))
	}
	type answer struct {
		*invoker.ElicitResult
		error
	}
	answers := make(chan answer, 1)
	b.turn.guard.background.Run("Options.Ask", func() {
		reached := answer{error: errors.New("the function that asks the person did not return")}
		defer func() { answers <- reached }()
		defer foreign.Caught("Options.Ask", &reached.error)
		result, err := ask(ctx, question)
		if err == nil && result == nil {
			err = errors.New("the function that asks the person returned nothing")
		}
		reached = answer{result, contain.Error(err)}
	})
	select {
	case reached := <-answers:
		return reached.ElicitResult, reached.error
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
