// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/logtail"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/converse/internal/replies"
	"github.com/consort-go/consort/converse/internal/tally"
	"github.com/consort-go/consort/converse/internal/unsaved"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

var (
	errLeft      = errors.New("the caller left the loop over the events")
	errTimeLimit = errors.New("the turn reached its time limit")
	errPanicked  = errors.New("the work ended in a panic")
)

// turn is a piece of work under way, on the goroutine of the caller's loop over the
// events.
type turn struct {
	conv   *Conversation
	opts   *Options // of conv
	piece  *work
	ctx    context.Context // of the work; a step that the time limit may end has another one
	cancel context.CancelCauseFunc
	// identity returns the identity that the work is done for; see [owner.Digest].
	identity func() (string, error)

	read     turnState // see state
	progress progress
	loop     loop
	guard    *guard
	recorder *recorder
	account  *account
	asker    *asker
	auditor  *auditor

	tools      *offer // the tools of the work
	refusals   int    // how often a request was too long for the model
	summarizes bool   // it only writes a summary, for [Conversation.Compact]

	agent *telemetry.Agent // the span of the work, or nil
	spent *tally.Tally
}

// newTurn returns the state of a piece of work.
func newTurn(ctx context.Context, c *Conversation, piece *work, yield func(Event, error) bool) *turn {
	spent, opts := &tally.Tally{}, &c.opts
	guard := newGuard(ctx, c, &piece.leftovers)
	account := &account{opts: opts, guard: guard, work: ctx}
	return &turn{
		conv:     c,
		opts:     opts,
		piece:    piece,
		ctx:      ctx,
		cancel:   piece.cancel,
		identity: sync.OnceValues(func() (string, error) { return owner.Digest(ctx, opts.ID, opts.Identity) }),
		read:     turnState{begin: -1},
		loop:     loop{yield: yield},
		guard:    guard,
		recorder: &recorder{conv: c, opts: opts, guard: guard},
		account:  account,
		asker:    &asker{conv: c, opts: opts, guard: guard, account: account, spent: spent},
		auditor:  &auditor{opts: opts, guard: guard, spent: spent},
		spent:    spent,
	}
}

// loop is the caller's loop over the events.
type loop struct {
	yield  func(Event, error) bool
	inBody bool // the body of the loop runs, or has panicked
}

// contain turns a panic of do into the error of the work. A panic in the loop over the
// events belongs to the caller and passes.
func (t *turn) contain(do func()) {
	defer func() {
		if t.loop.inBody {
			return
		}
		if value := recover(); value != nil {
			err := foreign.Crashed("a function of the program", value)
			t.progress.fail(err)
			t.guard.logCrash(t.ctx, err)
		}
	}()
	do()
}

// deliver yields an event or an error to the caller's loop.
func (l *loop) deliver(event Event, err error) (more bool) {
	l.inBody = true // stays true if the loop panics
	more = l.yield(event, err)
	l.inBody = false
	return more
}

// emit yields an event, and cancels everything when the caller has left.
func (t *turn) emit(event Event) {
	if t.progress.phase != phaseLeft && !t.loop.deliver(event, nil) {
		t.progress.end(phaseLeft, errLeft)
		t.cancel(errLeft)
	}
}

// over reports whether the work has ended early.
func (t *turn) over() bool {
	if t.ctx.Err() != nil {
		t.progress.fail(t.interruption())
	}
	return t.progress.ended()
}

// interruption returns an error with the end of the context and its cause.
func (t *turn) interruption() error {
	return interruption{fmt.Errorf("converse: the turn was interrupted: %w", context.Cause(t.ctx)), t.ctx.Err()}
}

// interruption is the error of a turn whose context has ended, with its cause.
type interruption struct {
	error
	ended error
}

func (i interruption) Unwrap() []error { return []error{i.error, i.ended} }

// finish gives every invocation a result if the work was interrupted, and reports the
// error.
func (t *turn) finish() {
	if t.over() && t.progress.reached >= phaseTaken && (t.progress.phase == phaseLeft || t.ctx.Err() != nil) && !t.suspended() {
		t.contain(func() {
			if t.appendOwed(); len(t.conv.owed) == 0 { // a call whose result is owed gets no other one
				t.answerPending("the turn was interrupted first", true)
			}
		})
	}
	if t.progress.phase == phaseFailed {
		t.progress.enter(phaseLeft)
		err := redactError(t.guard.clean, t.piece.leftovers.Explain(t.progress.err))
		t.loop.deliver(nil, unsaved.Mark(err, len(t.conv.owed)+len(t.conv.unmadeIntents) > 0))
	}
}

// suspended reports whether the work is suspended, or will be as soon as the running
// calls have ended.
func (t *turn) suspended() bool { return t.cutOff() || t.piece.suspension.Err() != nil }

// cutOff reports whether the work was cancelled with ErrSuspended.
func (t *turn) cutOff() bool { return errors.Is(context.Cause(t.ctx), ErrSuspended) }

// append appends canisters to the history; see [recorder.append]. It reports whether
// they entered.
func (t *turn) append(canisters ...canister.Canister) bool {
	if t.recorder.broken {
		return false
	}
	if err := t.recorder.append(t.ctx, canisters); err != nil {
		t.progress.fail(err)
		return false
	}
	return true
}

// appendOwed appends the results that are known but could not be appended before, so that
// their calls are not made again.
func (t *turn) appendOwed() {
	if len(t.conv.owed) > 0 && t.append(t.conv.owed...) {
		t.conv.owed = nil
	}
}

// add appends a caller's canisters if the history is valid with them.
func (t *turn) add(canisters []canister.Canister) {
	if t.over() {
		return
	}
	for i, c := range canisters {
		if c == nil {
			t.progress.fail(fmt.Errorf("converse: canister %d to add is nil", i))
			return
		}
	}
	if err := logtail.Clash(t.ctx, t.opts.Log, t.opts.ID, t.conv.held, canisters); err != nil {
		t.progress.fail(err)
		return
	}
	whole := t.conv.History()
	for _, c := range canisters {
		if answer, ok := c.(canister.Answer); ok {
			if err := calls.CheckAnswer(t.opts.ID, whole, answer, t.opts.Now()); err != nil {
				t.progress.fail(err)
				return
			}
		}
		whole = append(whole, compaction.Unmarked(c))
	}
	for _, problem := range sequence.Check(whole) {
		if problem.Rule != sequence.RuleOpen && problem.Rule != sequence.RuleMissingID {
			t.progress.fail(fmt.Errorf("converse: the canisters do not fit the history: %v", problem))
			return
		}
	}
	if t.append(whole[len(whole)-len(canisters):]...) {
		t.progress.enter(phaseDone)
	}
}

// answerPending gives each invocation that lacks a result one that says why it is not
// carried on. If mayWait, invocations that wait for an answer keep waiting.
func (t *turn) answerPending(why string, mayWait bool) {
	pending := canister.Pending(t.conv.history)
	if mayWait {
		policy := t.policy()
		pending = calls.Unwaiting(policy.Conversation, policy.Identity, t.conv.history, t.opts.Now())
	}
	known := calls.Read(t.conv.history, t.conv.unmadeIntents, t.policy().Identity)
	for _, invocation := range pending {
		failure := t.abandoned(known[invocation.ID], invoker.Canceled, why)
		result := canister.Result{
			Invocation: invocation.ID,
			Parent:     invocation.Parent,
			Code:       string(failure.Code),
			Content:    canister.Texts(failure.Message),
		}
		if t.append(result) {
			t.auditor.recordUnstarted(t.ctx, &outcome{call: &call{invocation: invocation, tool: t.tools.tool(invocation.Name)}, result: result}, failure)
		}
	}
}

// abandoned returns the failure for a call that is not carried on. Earlier work may
// have made a call that was open when this work began; only a log records that. The history
// does not mention the call if s is nil or untried.
func (t *turn) abandoned(s *calls.State, code invoker.Code, why string) *invoker.Failure {
	s = cmp.Or(s, untried)
	switch {
	case clienttools.IsCall(s.Wait):
		return clienttools.Unreturned(why + ".")
	case s != untried || t.progress.reached == phaseAsked || t.opts.Log != nil:
		return s.Barred(code, why)
	}
	return invoker.Failf(code, "The call was interrupted before it had a result: %s. It may or may not have taken effect.", why)
}

// work carries the history on until the turn is done.
func (t *turn) work() { t.step(-1) }

// step does up to n steps, or all if n is negative.
func (t *turn) step(n int) {
	if t.over() {
		return
	}
	state := t.state()
	ctx, cancel := t.limitTime(state)
	defer cancel()
	switch t.next().(type) {
	case Await, Done:
	default:
		t.progress.enter(phaseTaken)
		t.openTools(ctx, state.begin)
	}
	for ; n != 0 && !t.over(); n-- {
		command := t.next()
		if t.suspends(command) {
			return
		}
		switch command := command.(type) {
		case Exchange:
			t.exchange(ctx, command)
		case Compact:
			t.compact(ctx, command)
		case Invoke:
			if n > 0 {
				command.Pending = command.Pending[:1]
			}
			t.invoke(ctx, command)
		case Await:
			if t.moved() {
				continue
			}
			t.complete(ReasonWaiting, command.Waits)
			return
		case Done:
			t.complete(command.Reason, nil)
			return
		}
	}
}

// moved reports whether one of the open waits was answered meanwhile. If another process
// has carried on the conversation, the work fails with a conflict.
func (t *turn) moved() bool {
	if t.progress.reached < phaseTaken || t.opts.Log == nil { // the log was just loaded, or there is none
		return false
	}
	length := len(t.conv.history)
	if err := t.recorder.load(t.ctx); err != nil {
		t.progress.fail(err)
	}
	return t.progress.ended() || len(t.conv.history) > length
}

// suspends reports whether the work is suspended before a command.
func (t *turn) suspends(command Command) bool {
	switch command.(type) {
	case Exchange, Compact, Invoke:
		if t.suspended() {
			t.progress.fail(ErrSuspended)
			return true
		}
	case Await, Done:
	}
	return false
}

// complete ends the work, with nothing left to do now.
func (t *turn) complete(reason Reason, waits []canister.Wait) {
	state := t.state()
	summary := state.turn(reason)
	summary.Waits = waits
	summary.Spent, summary.Reached = t.account.total(), t.account.reached
	t.progress.complete(reason)
	t.emit(TurnCompleted{Turn: summary})
}

// policy returns the conversation's policy with the identity that the work is done for.
func (t *turn) policy() Policy {
	policy := t.conv.policy()
	policy.Identity, _ = t.identity() // an empty identity matches all waits
	return policy
}

// state returns the state of the turn. It reads what was appended since the last call.
func (t *turn) state() *turnState {
	t.read.extend(t.conv.history, t.opts.Limits)
	return &t.read
}

// next returns the step of [Next], and adds the limits that have stopped the work, which Next
// does not know.
func (t *turn) next() Command {
	command := t.policy().next(t.conv.history, t.state(), t.opts.Now())
	switch command.(type) {
	case Exchange, Compact:
		if t.progress.stop != "" {
			return Done{Reason: t.progress.stop}
		}
	}
	return command
}

// limitTime returns the context of the work, which ends when the turn's time is up.
func (t *turn) limitTime(state *turnState) (context.Context, context.CancelFunc) {
	limit := t.opts.Limits.Time
	if limit <= 0 || !state.begun {
		return t.ctx, func() {}
	}
	remaining := limit - calls.InTurn(t.conv.history, state.begin, t.opts.Now())
	return context.WithTimeoutCause(t.ctx, remaining, errTimeLimit)
}

// timedOut records and reports whether the turn's time, rather than the caller, ended
// ctx.
func (t *turn) timedOut(ctx context.Context) bool {
	if t.ctx.Err() == nil && errors.Is(context.Cause(ctx), errTimeLimit) {
		t.progress.limit(ReasonTime)
	}
	return t.progress.stop == ReasonTime
}

// exchange asks the model once and adds its reply to the history.
func (t *turn) exchange(ctx context.Context, command Exchange) {
	t.growTools(ctx)
	started := t.opts.Now()
	t.emit(MessageStarted{})
	t.introduce(t.tools)
	ids := replies.NewIDs(t.opts.NewID)
	asking := t.asker.newExchange(requestOf(t, command, ids), "")
	t.ask(ctx, ids, asking)
	if asking.added != nil {
		addReply(ctx, t, asking, command.Limited, started)
	}
}

// requestOf returns the request of an exchange.
func requestOf(t *turn, command Exchange, ids *replies.IDs) *Request {
	purpose := PurposeAnswer
	if command.Final {
		purpose = PurposeFinalAnswer
	}
	return &Request{
		Purpose:       purpose,
		History:       t.conv.view.Of(t.conv.history),
		Tools:         t.tools.set,
		NoInvocations: command.Final,
		NewID:         ids.Next,
	}
}

// addReply adds the reply of an exchange to the history and reports it. A final answer has a limit.
func addReply(ctx context.Context, t *turn, asking *exchangeSpan, limit Reason, started time.Time) {
	reply, added := asking.reply, asking.added
	added[0] = noteTrace(ctx, t.noteAdded(reply.Message, limit))
	if !t.append(added...) {
		return
	}
	t.progress.enter(phaseAsked)
	t.asker.counted, t.asker.countedBy = len(t.tools.set.Definitions), reply.Message.ID
	for _, c := range added {
		switch c := c.(type) {
		case canister.Assistant:
			t.emit(MessageCompleted{Message: c})
		case canister.Invocation:
			t.emit(InvocationRequested{Invocation: c})
		}
	}
	t.emit(ExchangeCompleted{
		Finish:   reply.Message.Finish,
		Usage:    reply.Message.Usage,
		Duration: t.opts.since(started),
	})
}

// ask runs one exchange and sets its reply with the canisters. It sets none if
// the caller left, the time was up, or the model failed.
func (t *turn) ask(ctx context.Context, ids *replies.IDs, asking *exchangeSpan) {
	if t.over() {
		return
	}
	defer asking.end()
	for event, err := range asking.events(ctx, t.conv.model, t.conv.info) {
		if err != nil {
			if asking.err = err; !t.tooLong(err, &t.conv.refused, compaction.RequestTokens(t.conv.history)) {
				asking.err = t.failExchange(ctx, advised(t.opts, err))
			}
			return
		}
		if _, last := event.(Reply); !last && ctx.Err() != nil { // the model has not noticed yet
			asking.err = t.failExchange(ctx, ctx.Err())
			return
		}
		switch event := event.(type) {
		case Reply:
			asking.reply = &event
			asking.added, err = ids.Canisters(event.Message, event.Invocations)
			if err != nil {
				err = &ModelError{Message: "the reply cannot be added to the history: " + err.Error()}
				t.progress.fail(err)
			}
			asking.err = err
			return
		case Delta:
			asking.streamed()
			t.emitDelta(event)
		case Retry:
			asking.retried(event)
			t.emitAttempt(event)
		case Fallback:
			asking.moved(ctx, event)
			t.emitAttempt(event)
		}
		if t.progress.phase == phaseLeft {
			asking.err = errLeft
			return
		}
	}
	asking.err = t.failExchange(ctx, &ModelError{Message: "the exchange ended without a reply"})
}

// emitAttempt reports that an attempt to get an answer failed and that another follows.
func (t *turn) emitAttempt(event ModelEvent) {
	switch event := event.(type) {
	case Retry:
		event.Err = redactError(t.guard.clean, event.Err)
		t.emit(ExchangeRetried{Retry: event})
	case Fallback:
		event.Err = redactError(t.guard.clean, event.Err)
		t.emit(ExchangeMoved{Fallback: event})
	}
}

func (t *turn) emitDelta(delta Delta) {
	if delta.Reasoning != "" {
		t.emit(ReasoningDelta{Text: delta.Reasoning})
	}
	if delta.Text != "" {
		t.emit(TextDelta{Text: delta.Text})
	}
	if delta.Invocation != "" {
		t.emit(InvocationAnnounced{Name: delta.Invocation})
	}
}

// failExchange records how an exchange ended: the time or the budget was used up, the
// work was interrupted, or the model failed. It returns the error of the exchange.
func (t *turn) failExchange(ctx context.Context, err error) error {
	if t.timedOut(ctx) {
		return errTimeLimit
	}
	if t.account.outOfBudget(err) {
		t.progress.limit(ReasonBudget)
		return err
	}
	if t.ctx.Err() != nil {
		err = t.interruption()
	}
	t.progress.fail(err)
	return err
}
