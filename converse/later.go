// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
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
// tool of any other call is told immediately that the person gave no answer.
func Later(within time.Duration, who string) error { return &later{deferral{within, who}} }

type later struct{ deferral }

func (*later) Error() string { return "the person answers later" }

// errLater ends a call that will be made again when the person has answered.
var errLater = errors.New("converse: the call waits for the answer of a person")

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
