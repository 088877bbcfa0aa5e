// SPDX-License-Identifier: Apache-2.0

package clientcalls

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/waitrules"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxOpen bounds the approvals of one client that wait at the same time.
const maxOpen = 100

// state is the state of an approval: its last round.
type state struct {
	length     int // of the log
	invocation canister.Invocation
	wait       canister.Wait
	answer     canister.Answer
	intent     canister.Intent
	over       bool // the call has an outcome

	before *canister.Result // the outcome of the call of the round before; nil if none was made
}

// readState reads the state of an approval from the end of the log.
func readState(ctx context.Context, log history.Log, id string) (*state, error) {
	const rounds = 2
	start, canisters, err := history.Tail(ctx, log, id, func(_ int, end []canister.Canister) bool {
		begun := 0
		for _, c := range end {
			if c.Kind() == canister.KindUser {
				begun++
			}
		}
		return begun >= rounds
	})
	if err != nil {
		return nil, err
	}
	s := &state{}
	var made *canister.Result
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.User:
			s = &state{before: made}
		case canister.Invocation:
			s.invocation = c
		case canister.Wait:
			s.wait = c
		case canister.Answer:
			if s.answer.ID == "" && s.holds(c) {
				s.answer = c
			}
		case canister.Intent:
			s.intent = c
		case canister.Result:
			if s.over = true; s.intent.ID != "" {
				made = &c
			}
		default: // an Assistant says nothing about the state, and others do not occur
		}
	}
	s.length = start + len(canisters)
	return s, nil
}

// holds reports whether an answer to the wait came in time, from a person who may give it.
func (s *state) holds(answer canister.Answer) bool {
	return answer.ID != "" && answer.Wait == s.wait.ID && waitrules.Holds(s.wait, answer)
}

// isOf reports whether the state is about the call of an approval. Its identity says so
// too, but is short.
func (s *state) isOf(a *approval) bool {
	return s.wait.Identity == a.bound && s.wait.Fingerprint == a.sealed && s.wait.Arguments == string(a.ask.Arguments) &&
		s.wait.Conversation == a.id && s.wait.Invocation == s.invocation.ID
}

// expiry returns when the answer expires.
func (s *state) expiry() time.Time { return waitrules.Expiry(s.wait, s.answer) }

// append adds canisters to the log as it was read.
func (a *approval) append(ctx context.Context, s *state, canisters ...canister.Canister) error {
	err := a.store.Append(ctx, a.id, s.length, canisters...)
	if conflict := (*history.ConflictError)(nil); err == nil || errors.As(err, &conflict) {
		return err
	}
	return unreadable(err)
}

func head() canister.Head { return canister.Head{ID: rand.Text(), Time: time.Now()} }

// propose begins a new round, after ended, which completes the one before.
func (a *approval) propose(ctx context.Context, s *state, ended []canister.Canister) error {
	if err := a.mayWait(ctx); err != nil {
		return err
	}
	name := approvals.Name(a.ask)
	message, invocation := canister.Assistant{Head: head()}, canister.Invocation{Head: head(), Name: name, Arguments: string(a.ask.Arguments)}
	invocation.Message, invocation.CallID = message.ID, invocation.ID
	wait := canister.Wait{
		Head: head(), For: canister.WaitApproval, Invocation: invocation.ID, Who: a.demand.Who, Conversation: a.id,
		Identity: a.bound, Fingerprint: a.sealed, Arguments: string(a.ask.Arguments),
	}
	wait.Deadline = wait.Time.Add(cmp.Or(a.demand.Within, DefaultWithin))
	err := a.append(ctx, s, append(ended, canister.User{Head: head(), Content: canister.Texts(a.title())}, message, invocation, wait)...)
	if err != nil || !a.lasts {
		return err
	}
	logevent.Log(ctx, a.rules.Logger, zapcore.InfoLevel, "a call waits for an approval", logevent.ServeApprovalRequested, append(a.fields(), zap.Time("deadline", wait.Deadline), zap.String("who", wait.Who))...)
	return nil
}

func (a *approval) title() string {
	return callsOf(a.client) + approvals.Name(a.ask)
}

// describe sets the owner and the title of the approval, again if the process that proposed
// it died before.
func (a *approval) describe(ctx context.Context) error {
	if !a.lasts {
		return nil
	}
	title := a.title()
	return a.store.Describe(ctx, a.id, history.Change{Owner: &a.owner, Title: &title})
}

// mayWait returns why another approval of the client cannot wait. It ends those whose time
// is over, so that no more than maxOpen stay.
func (a *approval) mayWait(ctx context.Context) error {
	if !a.lasts {
		return nil
	}
	open := 0
	for info, err := range a.store.List(ctx, history.Filter{Owner: a.owner, Open: true}) {
		if err != nil && info.ID != "" && info.Owner != a.owner {
			continue // not known to be a call of the client
		}
		if err != nil {
			return unreadable(err)
		}
		s, err := readState(ctx, a.store, info.ID)
		if err != nil {
			return unreadable(err)
		}
		until := s.wait.Deadline
		if s.answer.ID != "" {
			until = s.expiry()
		}
		if open++; info.ID == a.id || s.over || s.intent.ID != "" || time.Now().Before(until) {
			continue
		}
		if a.store.Append(ctx, info.ID, s.length, a.ended(s, invoker.Denied, "There was no answer in time, or the call was not made in time.")...) == nil {
			open--
		}
	}
	if open >= maxOpen {
		return invoker.Failf(invoker.Denied, "This call needs an approval, and %d calls of this client wait for one already. It was not started.", open)
	}
	return nil
}

// ended returns the canisters that complete a round.
func (a *approval) ended(s *state, code invoker.Code, text string) []canister.Canister {
	result := canister.Result{Head: head(), Invocation: s.invocation.ID, Content: canister.Texts(text), Code: string(code)}
	return []canister.Canister{result, canister.Assistant{Head: head(), Finish: canister.FinishStop}}
}

// storeTimeout bounds how long the outcome of a call may take to be stored.
const storeTimeout = 10 * time.Second

// make uses the answer up and makes the call.
func (a *approval) make(ctx context.Context, s *state) (invoker.Output, error) {
	call, made, record := *a.call.Call, *a.call, a.call.Record // a copy: it can stand for work other than the tool's
	made.Tool, made.Call = a.tool, &call
	call.Arguments = a.ask.Arguments
	intent := canister.Intent{
		Head: head(), Invocation: s.invocation.ID, Attempt: 1, Key: call.ID, Wait: s.wait.ID,
		Approved: s.expiry(), Identity: a.bound, Fingerprint: a.sealed,
	}
	if s.answer.Verdict == canister.VerdictChange {
		call.Arguments = s.answer.Arguments
		intent.Arguments = string(s.answer.Arguments)
	}
	a.gate.begin(a.gate.running, intent.ID)
	defer a.gate.end(a.gate.running, intent.ID)
	if err := a.append(ctx, s, intent); err != nil {
		return invoker.Output{}, err
	}
	record.By = s.answer.By
	if intent.Arguments != "" {
		record.Approved = call.Arguments
	}
	logevent.Log(ctx, a.rules.Logger, zapcore.InfoLevel, "an approved call begins", logevent.ServeApprovalUsed, append(a.fields(), zap.String("by", s.answer.By))...)
	*a.made = true
	output, err := made.Make(ctx)
	s.length++
	a.storeOutcome(ctx, s, invoker.AsFailure(err))
	if err == nil && intent.Arguments != "" {
		output.Content = append(output.Content, canister.Text("The call was made with other arguments, which "+s.answer.By+" chose."))
	}
	return output, err
}

// storeOutcome stores the outcome of a call. If it cannot, the next equal call finds that the
// outcome is unknown, when no other process can be making the call any longer.
func (a *approval) storeOutcome(ctx context.Context, s *state, failure *invoker.Failure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	outcome := a.ended(s, "", "The call succeeded.")
	if failure != nil {
		outcome = a.ended(s, failure.Code, "The call failed.")
	}
	if err := a.store.Append(ctx, a.id, s.length, outcome...); err != nil {
		logevent.Log(ctx, a.rules.Logger, zapcore.WarnLevel, "the outcome of an approved call could not be stored", logevent.ServeApprovalFailed, zap.String("approval", a.id), zap.Error(err))
	}
}

// fields returns the fields of each log entry about an approval.
func (a *approval) fields() []zap.Field {
	return []zap.Field{zap.String("approval", a.id), zap.String("tool", approvals.Name(a.ask)), zap.String("client_name", a.client)}
}
