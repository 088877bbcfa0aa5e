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
// [ExchangeCompleted], [CompactionCompleted] or [TurnCompleted]. The set is closed.
type Event interface{ event() }

// TurnStarted opens the work of a Send, Continue or Step.
type TurnStarted struct {
	// Tools is the number of tools on offer when this turn begins.
	Tools int
	// Added and Removed are the tools that came and went since the turn
	// before, under their names for the model, sorted. The first turn of a
	// conversation adds none.
	Added, Removed []string
	// Aside are the tools that cannot be offered, with reasons.
	Aside []ensemble.Aside
	// Away are the ensembles that could not be reached, whose tools are
	// missing for that reason.
	Away []ensemble.Away
}

// ToolsAdded says that more tools are on offer from the next exchange on, because
// their servers have added them. Those that were on offer stay, each with its
// definition and in its place, until the turn ends.
type ToolsAdded struct {
	// Tools is the number of tools on offer now.
	Tools int
	// Added are the new ones, under their names for the model, in the order in
	// which they are offered.
	Added []string
	// Aside are those that cannot be offered, with reasons.
	Aside []ensemble.Aside
}

// MessageStarted comes before the first delta of an exchange.
type MessageStarted struct{}

// TextDelta is a piece of the model's answer as it streams in.
type TextDelta struct{ Text string }

// ReasoningDelta is a piece of what a model shows of its reasoning.
type ReasoningDelta struct{ Text string }

// InvocationAnnounced says that the model begins to write a call. Its arguments
// can take a while; an InvocationRequested follows when they are complete, if
// the exchange does not fail. Not every model announces its calls.
type InvocationAnnounced struct {
	// Name is the tool's name as far as the model has written it.
	Name string
}

// MessageCompleted holds what the model said in an exchange. The canister is
// in the history.
type MessageCompleted struct{ Message canister.Assistant }

// InvocationRequested holds a call that the model asks for. The canister is
// in the history.
type InvocationRequested struct{ Invocation canister.Invocation }

// InvocationStarted says that a call begins to run, approved if need be.
type InvocationStarted struct{ Invocation canister.Invocation }

// InvocationProgressed is a report of a tool while it runs. Who is slow to read
// the events misses some.
type InvocationProgressed struct {
	Invocation canister.Invocation
	Progress   invoker.Progress
}

// InvocationCompleted holds what came of a call. With a log the result is in the
// history; otherwise it enters when those of all calls asked for before it have.
type InvocationCompleted struct {
	Invocation canister.Invocation
	Result     canister.Result
	// Duration is how long the call ran: 0 for one that never started.
	Duration time.Duration
	// Cause is what people can be told of a failure beyond the Result, which is
	// what the model is told: how the process of the server ended, and the last
	// words of its stderr ([ensemble.ProcessError]). It went through
	// Options.Redact, and is empty if there is no more to say.
	Cause string
}

// WaitStarted says that a call waits for somebody. The canister is in the
// history.
type WaitStarted struct{ Wait canister.Wait }

// WaitEnded says that a call goes on that waited for somebody. The ID of the
// answer is empty if none came in time, from one who may give it.
type WaitEnded struct {
	Wait   canister.Wait
	Answer canister.Answer
}

// ExchangeRetried says that the model could not be reached and will be tried
// again.
type ExchangeRetried struct{ Retry }

// ExchangeCompleted closes an exchange with the model.
type ExchangeCompleted struct {
	Finish   canister.Finish
	Usage    *canister.Usage // nil when the server did not say
	Duration time.Duration
}

// CompactionCompleted says that the model will be told less of what is long ago;
// see [Compaction]. It stands where an exchange does.
type CompactionCompleted struct {
	// Document says so in the history: it is what the model is told in place of
	// what it stands for, or says that results before it are cut.
	Document canister.Document
	// From and To are the IDs of the first and the last canister that it is about.
	From, To string
	// Trimmed is to how many bytes results are cut; 0 if there is a summary.
	Trimmed int
	// Before and After are about how many tokens a request had and has.
	Before, After int64
	Usage         *canister.Usage // of the summary; nil without one, or when the server did not say
	Duration      time.Duration
}

// TurnCompleted closes a turn.
type TurnCompleted struct{ Turn Turn }

// Turn is what came of a turn.
type Turn struct {
	Reason Reason
	// Answer is the last message of the turn; its ID is empty when the turn
	// had none.
	Answer canister.Assistant
	// Exchanges counts the exchanges of the turn, those that tools asked for
	// among them, Invocations its calls.
	Exchanges   int
	Invocations int
	// Usage is the sum over the exchanges whose usage is known.
	Usage canister.Usage
	// Spent is what this piece of work, which may be a part of the turn, has
	// spent of Options.Budget: what its answers were allowed to have where their
	// usage is not known. Money is 0 if the model has no price, and Time if no
	// cap is one of time.
	Spent budget.Amount
	// Reached says which cap ended the turn if Reason is ReasonBudget, and is
	// nil otherwise.
	Reached *budget.ReachedError
	// Waits are what is waited for if Reason is ReasonWaiting, in the order of
	// the history.
	Waits []canister.Wait
}

// Text returns the text of the answer.
func (t Turn) Text() string { return canister.TextOf(t.Answer.Content) }

// Reason says why a turn ended.
type Reason string

// The reasons for which a turn ends without an error.
const (
	ReasonAnswered      Reason = "answered"       // the model had nothing more to ask
	ReasonLength        Reason = "length"         // the model reached its limit of output tokens
	ReasonContentFilter Reason = "content_filter" // the model's server held text back
	ReasonRefusal       Reason = "refusal"        // the model declined
	ReasonCancelled     Reason = "cancelled"      // a person ended it, with a canister that says so
	ReasonNothing       Reason = "nothing"        // there was nothing to do
	ReasonExchanges     Reason = "exchange_limit" // Limits.Exchanges
	ReasonTime          Reason = "time_limit"     // Limits.Time
	ReasonTokens        Reason = "token_limit"    // Limits.Tokens
	ReasonBudget        Reason = "budget"         // Turn.Reached, of Options.Budget; Continue tries again
	ReasonWaiting       Reason = "waiting"        // Turn.Waits are waited for, see Answer
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
func (ExchangeCompleted) event()    {}
func (CompactionCompleted) event()  {}
func (TurnCompleted) event()        {}
