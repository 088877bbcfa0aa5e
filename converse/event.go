// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Event is something that happens in a conversation: [TurnStarted], [ToolsAdded],
// [MessageStarted], [TextDelta], [ReasoningDelta], [MessageCompleted],
// [InvocationAnnounced], [InvocationRequested], [InvocationStarted], [InvocationProgressed],
// [InvocationCompleted], [WaitStarted], [WaitEnded], [ExchangeRetried],
// [ExchangeMoved], [ExchangeCompleted], [CompactionCompleted] or [TurnCompleted]. The set is closed.
type Event interface{ event() }

// TurnStarted opens the work of a Send, Continue or Step.
type TurnStarted struct {
	// Tools is the number of tools on offer when this turn begins.
	Tools int
	// Added and Removed are the tools that were added and removed since the previous
	// turn, under their names for the model, sorted. The first turn of a conversation
	// adds none.
	Added, Removed []string
	// Aside are the tools that cannot be offered, with reasons.
	Aside []ensemble.Aside
	// Away are the ensembles that could not be reached and whose tools are therefore
	// missing.
	Away []ensemble.Away
}

// ToolsAdded reports that more tools are on offer from the next exchange on, because
// their servers have added them. The earlier tools stay until the turn ends, with
// unchanged definitions and in the same order.
type ToolsAdded struct {
	// Tools is the number of tools on offer now.
	Tools int
	// Added are the new ones, under their names for the model, in the order of the
	// offer.
	Added []string
	// Aside are the new tools that cannot be offered, with reasons.
	Aside []ensemble.Aside
}

// MessageStarted comes before the first delta of an exchange.
type MessageStarted struct{}

// TextDelta is a piece of the model's answer as it streams in.
type TextDelta struct{ Text string }

// ReasoningDelta is a piece of the reasoning that a model shows.
type ReasoningDelta struct{ Text string }

// InvocationAnnounced reports that the model has begun to write a call. Its arguments
// can take a while; an InvocationRequested follows when they are complete, unless the
// exchange fails. Not every model announces its calls.
type InvocationAnnounced struct {
	// Name is the tool's name as far as the model has written it.
	Name string
}

// MessageCompleted holds the message of the model in an exchange. The canister is in
// the history.
type MessageCompleted struct{ Message canister.Assistant }

// InvocationRequested holds a call that the model asks for. The canister is
// in the history.
type InvocationRequested struct{ Invocation canister.Invocation }

// InvocationStarted reports that a call begins to run, after its approval if it needs
// one.
type InvocationStarted struct{ Invocation canister.Invocation }

// InvocationProgressed is a progress report of a running tool. A consumer that reads
// the events slowly misses some reports.
type InvocationProgressed struct {
	Invocation canister.Invocation
	Progress   invoker.Progress
}

// InvocationCompleted holds the result of a call. With a log the result is in the
// history; otherwise it enters the history after the results of all calls that were
// requested before it.
type InvocationCompleted struct {
	Invocation canister.Invocation
	Result     canister.Result
	// Duration is how long the call ran: 0 for one that never started.
	Duration time.Duration
	// Cause says more about a failure than Result, which is written for the model: how
	// the process of the server ended, and the last lines of its stderr
	// ([ensemble.ProcessError]). It is meant for people, has passed through
	// Options.Redact, and is empty if there is nothing to add.
	Cause string
}

// WaitStarted reports that a call waits for an answer. The canister is in the history.
type WaitStarted struct{ Wait canister.Wait }

// WaitEnded reports that a call goes on after a wait. The ID of the answer is empty if
// no answer came in time from a person who may give it.
type WaitEnded struct {
	Wait   canister.Wait
	Answer canister.Answer
}

// ExchangeRetried reports that the model could not be reached and will be tried again.
type ExchangeRetried struct{ Retry }

// ExchangeMoved reports that a model of a [Chain] is unavailable, and that another one is
// asked. Nothing of an answer was shown before it.
type ExchangeMoved struct{ Fallback }

// ExchangeCompleted closes an exchange with the model.
type ExchangeCompleted struct {
	Finish   canister.Finish
	Usage    *canister.Usage // nil when the server did not say
	Duration time.Duration
}

// CompactionCompleted reports that older parts of the conversation have been shortened
// for the model; see [Compaction]. It takes the place of the events of an exchange.
type CompactionCompleted struct {
	// Document records the compaction in the history: the model receives it instead of
	// the canisters that it summarises, or it says that results before it are cut.
	Document canister.Document
	// From and To are the IDs of the first and the last canister that it covers.
	From, To string
	// Trimmed is the size in bytes that results are cut to; 0 if there is a summary.
	Trimmed int
	// Before and After are the approximate tokens of a request before and after it.
	Before, After int64
	Usage         *canister.Usage // of the summary; nil without one, or when the server did not say
	Duration      time.Duration
}

// TurnCompleted closes a turn.
type TurnCompleted struct{ Turn Turn }

// Turn is the outcome of a turn.
type Turn struct {
	Reason Reason
	// Answer is the last message of the turn; its ID is empty when the turn
	// had none.
	Answer canister.Assistant
	// Exchanges counts the exchanges of the turn, including exchanges that tools asked
	// for. Invocations counts its calls.
	Exchanges   int
	Invocations int
	// Usage is the sum over the exchanges whose usage is known.
	Usage canister.Usage
	// Spent is the amount of Options.Budget that this piece of work, which may be a
	// part of the turn, has spent. For an answer of unknown usage it includes the
	// amount that the answer was allowed. Money is 0 if the model has no price, and
	// Time is 0 if no cap bounds time.
	Spent budget.Amount
	// Reached says which cap ended the turn if Reason is ReasonBudget, and is
	// nil otherwise.
	Reached *budget.ReachedError
	// Waits are the open waits if Reason is ReasonWaiting, in the order of the history.
	Waits []canister.Wait
}

// Text returns the text of the answer.
func (t Turn) Text() string { return canister.TextOf(t.Answer.Content) }

// Reason says why a turn ended.
type Reason string

// The reasons why a turn ends without an error.
const (
	ReasonAnswered      Reason = "answered"       // the model called no more tools
	ReasonLength        Reason = "length"         // the model reached its limit of output tokens
	ReasonContentFilter Reason = "content_filter" // the model's server held text back
	ReasonRefusal       Reason = "refusal"        // the model declined
	ReasonCancelled     Reason = "cancelled"      // a person ended it, recorded by a canister
	ReasonNothing       Reason = "nothing"        // there was nothing to do
	ReasonExchanges     Reason = "exchange_limit" // Limits.Exchanges
	ReasonTime          Reason = "time_limit"     // Limits.Time
	ReasonTokens        Reason = "token_limit"    // Limits.Tokens
	ReasonBudget        Reason = "budget"         // Turn.Reached, of Options.Budget; Continue tries again
	ReasonWaiting       Reason = "waiting"        // Turn.Waits are open, see waits.Answer
)

// Limited reports whether a limit or the budget of the conversation ended the turn.
func (r Reason) Limited() bool {
	return r == ReasonExchanges || r == ReasonTime || r == ReasonTokens || r == ReasonBudget
}

func (TurnStarted) event()          {}
func (ToolsAdded) event()           {}
func (MessageStarted) event()       {}
func (TextDelta) event()            {}
func (ReasoningDelta) event()       {}
func (InvocationAnnounced) event()  {}
func (MessageCompleted) event()     {}
func (InvocationRequested) event()  {}
func (InvocationStarted) event()    {}
func (InvocationProgressed) event() {}
func (InvocationCompleted) event()  {}
func (WaitStarted) event()          {}
func (WaitEnded) event()            {}
func (ExchangeRetried) event()      {}
func (ExchangeMoved) event()        {}
func (ExchangeCompleted) event()    {}
func (CompactionCompleted) event()  {}
func (TurnCompleted) event()        {}
