// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// The defaults of [Limits].
const (
	DefaultExchanges   = 16
	defaultParallel    = 8
	defaultResultBytes = 1 << 20
	defaultTools       = 1000
)

// defaultWaitFor is the default of Options.WaitFor.
const defaultWaitFor = 24 * time.Hour

// Options configure a conversation. Nil, and the zero value of each field, mean the
// default that the field names.
type Options struct {
	// ID identifies the conversation in audits, in logs and in the idempotency keys of
	// its calls ([invoker.Call].ID). The default is random and not part of the keys:
	// two conversations that continue the same History then share keys, so give each of
	// them an ID.
	ID string
	// Instructions, if not empty, open the history as a [canister.Supervisor]. The first
	// Send or Add adds them, and not if History is set.
	Instructions string
	// History is the history to continue; see [Conversation.Continue]. It must pass
	// [sequence.Check], apart from invocations at its end that lack their results. The
	// slice is copied. A program that stores conversations itself takes the canisters
	// from [Conversation.History] after a piece of work, and passes them here to carry
	// it on. With a Log, History must be empty.
	History []canister.Canister
	// Limits bound each turn.
	Limits Limits
	// Compaction shortens the requests when the conversation nears the model's window.
	// With nil, they are never shortened: a conversation that has become too long for
	// its model then fails with [CodeContextLength].
	Compaction *Compaction
	// Budget bounds the tokens, the money and the time that the conversation spends,
	// together with all conversations that share its ledger. It charges ID, which must
	// be set if a cap is to hold in another process, and the person that the trusted
	// values of the turn identify: all of the values, or the ones that Identity names.
	// Nil means no bounds.
	Budget *budget.Policy
	// Trusted are values that the tools of every turn receive in addition to the values
	// in the context of the turn; they override values of the same names there. See
	// [invoker.Trusted]. The model never sees them, and they do not appear in the
	// history, events and logs. Secret ones are also removed wherever Redact is
	// applied, and from log entries.
	Trusted []invoker.Value
	// Approve is asked about each invocation before it runs. Nil lets all run, without a
	// question. Package approve has functions that ask.
	Approve ApproveFunc
	// Forbid checks each invocation last, right before its call is made, whatever
	// allowed the call: Approve, an answer that was given to another process days ago,
	// or an approval that holds for a second attempt. If it returns true, the call is
	// denied and the model is told the reason. Use it for rules that may have changed
	// since the approval. It must not block on a person. A panic denies. It is called
	// concurrently. The call goes only to the server that was judged, and fails with
	// UNAVAILABLE if another one replaces it meanwhile. Nil forbids nothing.
	Forbid func(ctx context.Context, ask Approval) (reason string, forbidden bool)
	// Identity names the trusted values that a deferred approval ([Defer]) is bound to:
	// if the call would be made with other values, the approval is asked for again. Nil
	// means all. Name the values that identify the person if others, such as renewed
	// tokens, change from turn to turn.
	Identity []string
	// AskDoubt decides about a call that was begun and has no result, because a process
	// died or was abandoned: the history does not say whether the call was made. If
	// false, the model is told that the result is OUTCOME_UNKNOWN. If true, the call
	// waits up to WaitFor for a person who finds out ([canister.WaitOutcome]): the answer
	// gives the result, allows the call to be made again, or says that the outcome will
	// stay unknown; without an answer in time the result is OUTCOME_UNKNOWN. Either way
	// a call whose tool is read-only or idempotent is made again, with the same key.
	AskDoubt bool
	// WaitFor is how long a wait for an answer lasts unless it sets its own deadline,
	// and how long an immediate approval holds for a second attempt; default 24 hours.
	WaitFor time.Duration
	// Ask puts a tool's question to the person and returns the answer. It may take as
	// long as ctx lasts; the limits of the call are paused meanwhile, but Limits.Time
	// is not. It is called concurrently. Nil passes questions on to the person of the
	// call that the turn works for, if its context carries one (see
	// [invoker.WithCall]); otherwise questions cannot be asked. To let the person
	// answer later, maybe in another process, return [Later].
	Ask func(ctx context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error)
	// Audit receives one record of every invocation, whatever its outcome, before its
	// result enters the history; nil keeps none.
	Audit *audit.Trail
	// Log stores the conversation under ID, which is required then. Each piece of work
	// begins with the contents of the log, so that another process can carry on with
	// Continue. Each canister is appended before it enters the history, and an intent
	// before each call. If another process has carried on the conversation meanwhile,
	// and not only answered one of its waits, the work ends with a
	// [*history.ConflictError], its running calls are cancelled, and the next piece of
	// work begins with what the other process wrote. Results that the log did not
	// accept are appended again with the next work. Appends never overlap, and their
	// context does not end with the turn.
	Log history.Log
	// Spill stores a piece of a result that is larger than Limits.ResultBytes and
	// returns a link to it, which follows the line that reports the cut. At most the
	// first four such pieces of a result are stored, and its metadata that does not fit as
	// one more. It is called concurrently, also with a context that has ended: the piece
	// must be stored nevertheless. If it fails, the result has no link. Package spill
	// stores pieces in a folder, and removes them. Nil discards them.
	Spill func(ctx context.Context, conversation string, whole canister.Content) (canister.LinkContent, error)
	// OwnRoster closes the roster with the conversation.
	OwnRoster bool
	// NewID makes the IDs of canisters. Each must differ from all others of the
	// conversation: an empty one, or one that a canister of the history has, is an
	// error of the turn. The default is [crypto/rand.Text]. It is called concurrently,
	// from the invocations of a message, and must not block.
	NewID func() string
	// Now returns the current time for canisters and limits. The default is time.Now.
	// It is called concurrently and must not block. Limits.Time also ends the work
	// after that much real time, even if Now stands still.
	Now func() time.Time
	// Redact removes secrets from a text; nil leaves texts as they are. It is applied,
	// before they enter the history, an event or an error, to
	//
	//   - the texts, URIs, JSON strings, metadata and embedded resources of results and
	//     progress reports
	//   - log messages of tools, and their questions to the model
	//   - questions of tools that are recorded in a wait
	//   - arguments that an approval changes immediately
	//   - the text of an answer that the model receives
	//   - the reasons why tools are set aside or ensembles away
	//   - the texts of errors.
	//
	// It is not applied to images and audio, the messages of users and of the model,
	// answers as stored in the log, the definitions of tools, and entries for Logger.
	// It is called concurrently. If it panics on a text, or does not return, the text
	// is withheld as a whole.
	Redact func(text string) string
	// Logger receives log entries in addition to the events; nil logs nothing.
	Logger *zap.Logger
	// Telemetry makes the traces and measurements of the conversation; see "What can be
	// seen" in the package comment. Nil uses the telemetry in the context of a turn, if
	// there is any ([telemetry.With]), and none otherwise.
	Telemetry *telemetry.Telemetry
}

// since returns how long ago an instant was.
func (o *Options) since(instant time.Time) time.Duration { return o.Now().Sub(instant) }

// Limits bound a turn. Zero means the default, a negative value no limit.
type Limits struct {
	// Exchanges is how often the model may be asked in a turn, by the conversation and
	// by its tools together; default 16.
	Exchanges int
	// Time is how long a turn may take, counted from the user's message, or from the end of
	// the turn before if the message waited for it; default none. The time of deferred waits
	// ([Defer], [Later]) does not count, that of Approve and Ask does.
	Time time.Duration
	// Tokens is how many tokens, of requests and answers together, a turn may use
	// before no further exchange is begun; default none. Answers that its tools request
	// from the model are limited to the tokens that are left, also concurrently; the
	// tokens of the tools' requests are added to that.
	Tokens int64
	// Parallel is how many invocations of one message may run at the same
	// time; default 8.
	Parallel int
	// FinalAnswer asks the model for one more answer, without tools, when
	// Exchanges or Tokens is reached. The turn still ends with that reason.
	FinalAnswer bool
	// Tools is the maximum number of tools that a model is offered; the others are set
	// aside. Ensembles with few tools keep theirs, and those with many share the
	// remaining places, each in the order of names. Default 1000.
	Tools int
	// ResultBytes bounds the bytes of one result that enter the history, including its
	// metadata and the metadata of its contents; default 1 MiB. The excess is cut,
	// starting with metadata that do not fit in addition to the contents, and a line
	// says how much. Negative means no limit, but a Log stores at most 63 MiB of a
	// result in its JSON form: a longer one is lost, and the call fails with
	// RESULT_TOO_LARGE.
	ResultBytes int
}

// withDefaults replaces each zero by its default.
func (l Limits) withDefaults() Limits {
	l.Exchanges = cmp.Or(l.Exchanges, DefaultExchanges)
	l.Parallel = cmp.Or(l.Parallel, defaultParallel)
	l.ResultBytes = cmp.Or(l.ResultBytes, defaultResultBytes)
	l.Tools = cmp.Or(l.Tools, defaultTools)
	return l
}

// reached names the limit that allows no further exchange, if there is one. The limits
// must have their defaults.
func (l Limits) reached(exchanges int, usage canister.Usage) Reason {
	switch {
	case l.Exchanges > 0 && exchanges >= l.Exchanges:
		return ReasonExchanges
	case l.Tokens > 0 && usage.Total() >= l.Tokens:
		return ReasonTokens
	}
	return ""
}
