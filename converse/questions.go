// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
)

// Later is the error that Options.Ask returns when the person will answer later, maybe
// to another process, within the given time (0: Options.WaitFor). If who is not empty,
// only that person may answer.
//
// The call then ends: a [canister.Wait] with the question enters the history, and
// waits.Answer answers it. With the answer, or without one when the time is up, the call is
// made again with the same key, and the same question gets the answer from the history;
// a missing answer is [invoker.Dismiss]. Questions that were answered immediately are
// asked again. So is a question whose answer was for another identity
// (Options.Identity), another definition of the tool or, before a fork, another
// conversation; the call then needs a new approval.
//
// Only a call that can be made again ends in this way: its tool is read-only or
// idempotent, or nothing of the call is under way ([invoker.ElicitRequest].Anew). The
// tool of any other call is told immediately that the person gave no answer. A question
// that is not valid UTF-8, or has more than 1 MiB in its JSON form, fails.
func Later(within time.Duration, who string) error { return &later{deferral{within, who}} }

type later struct{ deferral }

func (*later) Error() string { return "the person answers later" }

// errLater ends a call that will be made again when the person has answered.
var errLater = errors.New("converse: the call waits for the answer of a person")

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
		ctx, cancel := foreign.During(ctx, q.ctx)
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
	if err := calls.CheckQuestion(form); err != nil {
		return nil, err
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

// known returns the answer to a question from the history, if it is there, and the text of
// the question, which has a number if an equal one was asked before. Histories of earlier
// versions have no numbers: the second of equal questions gets the second answer.
func (q *questions) known(question *invoker.ElicitRequest) (*invoker.ElicitResult, string, error) {
	first, err := calls.QuestionText(q.batch.clean, question, 1)
	if err != nil {
		return nil, "", err
	}
	q.mu.Lock()
	q.counts[first]++
	number := q.counts[first]
	q.mu.Unlock()
	form, err := calls.QuestionText(q.batch.clean, question, number)
	for _, asked := range q.call.state.Asked {
		bound := q.batch.gate.stillBound(q.call, asked.Wait)
		if bound && string(asked.Question) == first {
			number--
		}
		if bound && (number == 0 || string(asked.Question) == form && form != first) {
			return calls.Elicited(asked.Answer), form, err
		}
	}
	return nil, form, err
}

// wait ends the call until a person answers, if it can be made again.
func (q *questions) wait(d deferral, form string, anew bool) bool {
	if !anew && !q.call.tool.Repeatable() || !whole(q.call.intent) {
		return false
	}
	wait, failure := q.batch.gate.newWait(q.call, canister.WaitElicitation, d, string(q.call.arguments))
	if failure != nil {
		return false
	}
	wait.Question = json.RawMessage(form)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return false
	}
	if q.later == nil { // of several concurrent questions, only one is waited for
		q.later = wait
		q.giveUp(errLater)
	}
	return true
}

// end returns the wait that the call ended for, if any.
func (q *questions) end() *canister.Wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	return q.later
}
