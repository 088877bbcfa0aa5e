// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

var (
	errLeft      = errors.New("the caller left the loop over the events")
	errTimeLimit = errors.New("the turn reached its time limit")
	errPanicked  = errors.New("the work ended in a panic")
)

// turn is a piece of work under way, on the goroutine of the caller's loop over the
// events.
type turn struct {
	*Conversation
	piece  *work
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  func(Event, error) bool
	clean  redaction   // Options.Redact, and the secrets of the trusted values
	log    *zap.Logger // entries have the secrets of the trusted values removed

	tools    *offer // the tools of the work
	taken    bool   // the open step of the history has been taken up
	asked    bool   // a reply has entered, so open calls are new
	counted  int    // the number of tools in the request of that reply
	left     bool   // the caller has left the loop
	panicked bool   // or its body has panicked
	yielding bool   // the body of the loop runs
	refusals int    // how often a request was too long for the model
	expired  bool   // Limits.Time has ended the work
	broken   bool   // the log has failed: the history accepts nothing more
	done     bool   // the work is complete, and nothing can interrupt it
	reason   Reason // why the turn has ended, if it has
	err      error  // any other error that ended the work

	agent *telemetry.Agent // the span of the work, or nil
	spent spending
	bill  bill // the amount spent of the budget
}

// emit yields an event, and cancels everything when the caller has left.
func (t *turn) emit(event Event) {
	if !t.left && !t.deliver(event, nil) {
		t.left = true
		t.cancel(errLeft)
	}
}

// fail ends the work with an error; only the first error is kept.
func (t *turn) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// over reports whether the work has ended early.
func (t *turn) over() bool {
	if t.err == nil && !t.left && t.ctx.Err() != nil {
		t.fail(t.interruption())
	}
	return t.left || t.err != nil
}

// interruption returns an error with the end of the context and its cause.
func (t *turn) interruption() error {
	cause, ended := context.Cause(t.ctx), t.ctx.Err()
	if errors.Is(cause, ended) {
		return fmt.Errorf("converse: the turn was interrupted: %w", cause)
	}
	return fmt.Errorf("converse: the turn was interrupted: %w (%w)", cause, ended)
}

// finish gives every invocation a result if the work was interrupted, and reports the
// error.
func (t *turn) finish() {
	if t.done {
		return
	}
	if t.over() && t.taken && (t.left || t.ctx.Err() != nil) && !t.suspended() {
		t.contain(func() { t.answerPending("the turn was interrupted first", true) })
	}
	if t.err != nil && !t.left {
		t.left = true
		t.deliver(nil, t.clean.error(t.piece.explain(t.err)))
	}
}

// suspended reports whether the work is suspended, or will be as soon as the running
// calls have ended.
func (t *turn) suspended() bool { return t.cutOff() || t.piece.asked() }

// cutOff reports whether the work was cancelled with ErrSuspended.
func (t *turn) cutOff() bool { return errors.Is(context.Cause(t.ctx), ErrSuspended) }

// append fills in identities and times, appends the canisters to the log
// and adds them to the history. It reports whether they entered.
func (t *turn) append(canisters ...canister.Canister) bool {
	if t.broken {
		return false
	}
	entering := map[string]bool{}
	for i, c := range canisters {
		c, err := t.headed(c, entering)
		if err != nil {
			t.fail(err)
			return false
		}
		canisters[i] = c
	}
	t.broken = true // in case keep panics
	err := t.keep(canisters)
	if t.broken = err != nil; t.broken {
		t.fail(err)
		return false
	}
	t.mu.Lock()
	t.history = append(t.history, canisters...)
	t.mu.Unlock()
	return true
}

// headed fills in the identity and the time of a canister, and returns an error if it
// cannot enter the history together with the other entering canisters.
func (t *turn) headed(c canister.Canister, entering map[string]bool) (_ canister.Canister, err error) {
	defer caught("Options.NewID", &err)
	head := c.Header()
	if head.ID == "" || c.Kind() == canister.KindResult && t.used(head.ID, entering) {
		head.ID = t.opts.NewID()
	}
	if t.used(head.ID, entering) {
		return nil, sameIdentity(head.ID)
	}
	entering[head.ID] = true
	if head.Time.IsZero() {
		head.Time = t.opts.Now()
	}
	c = canister.WithHead(c, head)
	if err := canister.Writable(c); err != nil {
		return nil, fmt.Errorf("converse: this cannot enter the history: %w", err)
	}
	return c, nil
}

// used reports whether a canister of the history, or one that is entering, has the
// identity.
func (t *turn) used(id string, entering map[string]bool) bool {
	for ; t.identified < len(t.history); t.identified++ {
		t.identities[t.history[t.identified].Header().ID] = struct{}{}
	}
	_, used := t.identities[id]
	return used || entering[id]
}

// settle appends the results that are known but could not be appended before, so that
// their calls are not made again.
func (t *turn) settle() {
	if len(t.owed) > 0 && t.append(t.owed...) {
		t.owed = nil
	}
}

// add appends a caller's canisters if the history is valid with them.
func (t *turn) add(canisters []canister.Canister) {
	if t.over() {
		return
	}
	for i, c := range canisters {
		if c == nil {
			t.fail(fmt.Errorf("converse: canister %d to add is nil", i))
			return
		}
	}
	if err := t.clashes(canisters); err != nil {
		t.fail(err)
		return
	}
	whole := t.History()
	for _, c := range canisters {
		if answer, ok := c.(canister.Answer); ok {
			if err := checkAnswer(t.opts.ID, whole, answer, t.opts.Now()); err != nil {
				t.fail(err)
				return
			}
		}
		whole = append(whole, unmarked(c))
	}
	for _, problem := range canister.Check(whole) {
		if problem.Rule != canister.RuleOpen && problem.Rule != canister.RuleMissingID {
			t.fail(fmt.Errorf("converse: the canisters do not fit the history: %v", problem))
			return
		}
	}
	t.done = t.append(whole[len(whole)-len(canisters):]...)
}

// answerPending gives each invocation that lacks a result one that says why it is not
// carried on. If mayWait, invocations that wait for an answer keep waiting.
func (t *turn) answerPending(why string, mayWait bool) {
	pending := canister.Pending(t.history)
	if mayWait {
		pending, _ = openOf(t.policy(), t.history, t.opts.Now())
	}
	known := standings(t.history, t.unmadeIntents, t.policy().Identity)
	for _, invocation := range pending {
		failure := t.abandoned(known[invocation.ID], why)
		result := canister.Result{
			Invocation: invocation.ID,
			Code:       string(failure.Code),
			Content:    canister.Texts(failure.Message),
		}
		if t.append(result) {
			t.recordUnstarted(outcome{call: &call{invocation: invocation, tool: t.tools.tool(invocation.Name)}, result: result}, failure)
		}
	}
}

// abandoned returns the failure for a call that is not carried on. Earlier work may
// have made a call that was open when this work began; only a log records that.
func (t *turn) abandoned(s *standing, why string) *invoker.Failure {
	switch {
	case s != nil && (s.doubt || s.wait.For == canister.WaitOutcome):
		return s.unknown("")
	case s != nil && s.wait.For == canister.WaitElicitation:
		return invoker.Failf(invoker.Canceled, "The call was given up, to be made again with the answer of a person, and was not: %s.", why)
	case s != nil && (s.attempts > 0 || s.wait.ID != "") || t.asked || t.opts.Log != nil:
		return invoker.Failf(invoker.Canceled, "The call was not started: %s.", why)
	}
	return invoker.Failf(invoker.Canceled, "The call was interrupted before it had a result: %s. It may or may not have taken effect.", why)
}

// work carries the history on until the turn is done.
func (t *turn) work() { t.step(-1) }

// step does up to n steps, or all if n is negative.
func (t *turn) step(n int) {
	if t.over() {
		return
	}
	state := readTurn(t.history, t.opts.Limits)
	ctx, cancel := t.limitTime(state)
	defer cancel()
	switch t.next().(type) {
	case Await, Done:
	default:
		t.taken = true
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

// moved reports whether one of the open waits was answered meanwhile.
func (t *turn) moved() bool {
	if !t.taken || t.opts.Log == nil { // the log was just loaded, or there is none
		return false
	}
	length := len(t.history)
	if err := t.load(); err != nil {
		t.fail(err)
	}
	return t.err != nil || len(t.history) > length
}

// suspends reports whether the work is suspended before a command.
func (t *turn) suspends(command Command) bool {
	switch command.(type) {
	case Exchange, Compact, Invoke:
		if t.suspended() {
			t.fail(ErrSuspended)
			return true
		}
	}
	return false
}

// complete ends the work, with nothing left to do now.
func (t *turn) complete(reason Reason, waits []canister.Wait) {
	state := readTurn(t.history, t.opts.Limits)
	summary := state.turn(reason)
	summary.Waits = waits
	summary.Spent, summary.Reached = t.bill.total(), t.bill.reached
	t.done, t.reason = true, reason
	t.emit(TurnCompleted{Turn: summary})
}

// policy returns the conversation's policy with the identity that the work is done for.
func (t *turn) policy() Policy {
	policy := t.Conversation.policy()
	policy.Identity, _ = t.identity() // an empty identity matches all waits
	return policy
}

// next calls Next and adds the expired time and the reached budget, which Next does not
// know.
func (t *turn) next() Command {
	command := Next(t.history, t.policy(), t.opts.Now())
	switch command.(type) {
	case Exchange, Compact:
		if t.expired {
			return Done{Reason: ReasonTime}
		}
		if t.bill.reached != nil {
			return Done{Reason: ReasonBudget}
		}
	}
	return command
}

// limitTime returns the context of the work, which ends when the turn's time is up.
func (t *turn) limitTime(state turnState) (context.Context, context.CancelFunc) {
	limit := t.opts.Limits.Time
	if limit <= 0 || !state.begun {
		return t.ctx, func() {}
	}
	now := t.opts.Now()
	remaining := limit - now.Sub(state.start) + waited(t.history[state.begin:], state.start, now)
	return context.WithTimeoutCause(t.ctx, remaining, errTimeLimit)
}

// timedOut records and reports whether the turn's time, rather than the caller, ended
// ctx.
func (t *turn) timedOut(ctx context.Context) bool {
	if t.ctx.Err() == nil && errors.Is(context.Cause(ctx), errTimeLimit) {
		t.expired = true
	}
	return t.expired
}

// exchange asks the model once and adds its reply to the history.
func (t *turn) exchange(ctx context.Context, command Exchange) {
	t.growTools(ctx)
	started := t.opts.Now()
	t.emit(MessageStarted{})
	t.introduce(t.tools)
	ids := &identities{newID: t.opts.NewID, given: map[string]bool{}}
	purpose := PurposeAnswer
	if command.Final {
		purpose = PurposeFinalAnswer
	}
	reply, added := t.ask(ctx, ids, &Request{
		Purpose:       purpose,
		History:       t.view.of(t.history),
		Tools:         t.tools.set,
		NoInvocations: command.Final,
		NewID:         ids.next,
	})
	if added == nil {
		return
	}
	added[0] = t.noteAdded(reply.Message)
	if !t.append(added...) {
		return
	}
	t.asked, t.counted = true, len(t.tools.set.Definitions)
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
		Duration: t.opts.Now().Sub(started),
	})
}

// ask runs one exchange and returns the reply with its canisters. It returns none if
// the caller left, the time was up, or the model failed.
func (t *turn) ask(ctx context.Context, ids *identities, request *Request) (*Reply, []canister.Canister) {
	if t.over() {
		return nil, nil
	}
	ctx, asking := t.startChat(ctx, t.info, request)
	defer asking.end()
	for event, err := range t.pay(ctx, t.model, t.info, request, true) {
		if err != nil {
			if asking.err = err; !t.tooLong(err, &t.Conversation.refused, load(t.history)) {
				asking.err = t.failExchange(ctx, t.advised(err))
			}
			return nil, nil
		}
		if _, last := event.(Reply); !last && ctx.Err() != nil { // the model has not noticed yet
			asking.err = t.failExchange(ctx, ctx.Err())
			return nil, nil
		}
		switch event := event.(type) {
		case Reply:
			var added []canister.Canister
			asking.reply = &event
			if added, asking.err = event.canisters(ids); asking.err != nil {
				t.fail(asking.err)
			}
			return asking.reply, added
		case Delta:
			asking.streamed()
			t.emitDelta(event)
		case Retry:
			asking.retried(event)
			event.Err = t.clean.error(event.Err)
			t.emit(ExchangeRetried{Retry: event})
		}
		if t.left {
			asking.err = errLeft
			return nil, nil
		}
	}
	asking.err = t.failExchange(ctx, &ModelError{Message: "the exchange ended without a reply"})
	return nil, nil
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
	if t.outOfBudget(err) {
		return err
	}
	if t.ctx.Err() != nil {
		err = t.interruption()
	}
	t.fail(err)
	return err
}

// since returns how long ago an instant was.
func (t *turn) since(instant time.Time) time.Duration {
	return t.opts.Now().Sub(instant)
}
