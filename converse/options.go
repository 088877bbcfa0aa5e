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

// defaultWaitFor is how long is waited for somebody; see Options.WaitFor.
const defaultWaitFor = 24 * time.Hour

// Options are the choices of a conversation. Nil, and the zero value of each
// field, mean the default that the field names.
type Options struct {
	// ID is the identity of the conversation in audits, in logs and in the
	// idempotency keys of its calls ([invoker.Call].ID). The default is a random one,
	// of which the keys have nothing: two conversations that go on from one History
	// share keys then, so give each of them an ID.
	ID string
	// Instructions, if not empty, open the history as a [canister.Supervisor].
	// They are not added to a History that is given.
	Instructions string
	// History is where the conversation takes up; see [Conversation.Continue].
	// It must pass [canister.Check], apart from invocations at its end that
	// wait for their results. The slice is copied.
	History []canister.Canister
	// Limits bound each turn.
	Limits Limits
	// Compaction makes what the model is told shorter when the conversation
	// nears the model's window. Nil never does: a conversation that has become too
	// long for its model fails then with [CodeContextLength].
	Compaction *Compaction
	// Budget bounds what the conversation spends, together with all that share
	// its ledger: tokens, money and time. It is for ID, which is to be given if
	// a cap is to hold in another process, and for who the trusted values of the
	// turn stand for, all of them or those of Identity. Nil bounds nothing.
	Budget *budget.Policy
	// Trusted are values that the tools of every turn are given, beside those
	// that the context of the turn carries, and in place of those with the same
	// names; see [invoker.Trusted]. The model sees none of them, and neither do
	// history, events and logs. One that is marked as secret is also taken out
	// wherever Redact is applied, and out of what is logged.
	Trusted []invoker.Value
	// Approve is asked about each invocation before it runs. Nil lets all run.
	Approve ApproveFunc
	// Forbid looks at each invocation last, right before its call is made, whatever
	// lets it be made: Approve, an answer that was given to another process days ago,
	// or an approval that holds for a second attempt. If it returns true the call is
	// denied, and the model is told the reason. It is for rules that may have changed
	// since somebody approved, and must not wait for anybody. A panic denies. It is
	// called concurrently. Nil forbids nothing.
	Forbid func(ctx context.Context, ask Approval) (reason string, forbidden bool)
	// Identity are the names of the trusted values that an approval which was
	// put off ([Defer]) is bound to: when the call would be made with others, it
	// is asked for again. Nil means all. Name those that say who it is, if others
	// change from turn to turn, such as tokens that are renewed.
	Identity []string
	// Doubt says what becomes of calls that may have been made or not when a
	// process died, and cannot be made again. The default is [DoubtReport].
	Doubt Doubt
	// WaitFor is how long is waited for somebody where nothing else is said, and how
	// long an approval that was given at once holds for a second attempt; default
	// 24 hours.
	WaitFor time.Duration
	// Ask puts a tool's question to the person and returns the answer. It may
	// take as long as ctx lasts; the limits of the call stand still meanwhile,
	// but not Limits.Time. It is called concurrently. Nil passes questions on
	// to the person behind the call that the turn works for, if its context
	// carries one (see [invoker.WithCall]), and otherwise nobody is asked. To
	// be answered later, maybe in another process, it returns [Later].
	Ask func(ctx context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error)
	// Audit is given one record of every invocation, whatever became of it,
	// before its result enters the history; nil keeps none.
	Audit *audit.Trail
	// Log keeps the conversation under its ID, which is to be given then. Each
	// piece of work begins with what the log has, so that another process can
	// carry on with Continue; each canister is appended before it enters the
	// history, and an intent before each call. If somebody else has gone on with
	// the conversation meanwhile, and not only answered what it waits for, the work
	// ends with a [*history.ConflictError], what it had under way is cancelled, and
	// the next piece of work begins with what the other did.
	// Results that a log did not take are given to it again with the next work.
	Log history.Log
	// Journal is called with canisters before they enter the history, in
	// order; when it fails, so does the turn, and they do not enter. Results
	// that it did not take are given to it again with the next work, so that
	// no call is made twice. It is the seam for programs that keep
	// conversations. Calls never overlap. Its ctx does not end with the turn.
	Journal func(ctx context.Context, added []canister.Canister) error
	// Spill keeps what Limits.ResultBytes cuts off a result; see
	// [SpillFolder]. Nil keeps nothing.
	Spill SpillFunc
	// OwnRoster closes the roster with the conversation.
	OwnRoster bool
	// NewID makes the identities of canisters, each of which must differ from
	// all others of the conversation: an empty one, or one that a canister of the
	// history has, is an error of the turn. The default is [crypto/rand.Text]. It is
	// called concurrently, from the invocations of a message, and must not block.
	NewID func() string
	// Now tells the time for canisters and limits. The default is time.Now.
	// It is called concurrently and must not block. Limits.Time also ends what runs
	// after that much real time, even if Now stands still.
	Now func() time.Time
	// Redact takes what is secret out of a text; nil leaves texts as they are.
	// Through it pass, before they enter the history, an event or an error:
	// the texts, URIs, JSON strings, metadata and embedded resources of
	// results and reports of progress, what tools log and ask the model, their questions that are waited for, arguments that
	// an approval changes at once, what the model is told of an answer, why tools are set aside or ensembles away,
	// and the texts of errors. It does not see images and sounds, what users
	// and the model say, answers as they stand in the log, the definitions of tools, and what Logger is given. It
	// is called concurrently. A text on which it panics, or does not return, is
	// withheld as a whole.
	Redact func(text string) string
	// Logger takes what is worth knowing beside the events; nil is silent.
	Logger *zap.Logger
	// Telemetry makes the traces and measurements of the conversation; see
	// "What can be seen" in the package comment. Nil takes that of the context
	// of a turn, if it carries one ([telemetry.With]), and makes none otherwise.
	Telemetry *telemetry.Telemetry
}

// Limits bound a turn. Zero means the default, a negative value no limit.
type Limits struct {
	// Exchanges is how often the model may be asked in a turn, by the
	// conversation and by its tools together; default 16.
	Exchanges int
	// Time is how long a turn may take; default none. It counts from the
	// user's message on.
	Time time.Duration
	// Tokens is how many tokens, of requests and answers together, a turn may
	// use before no further exchange is begun; default none. The answers
	// that its tools ask the model for are bounded by what is left, also side
	// by side; what the tools say to the model comes on top.
	Tokens int64
	// Parallel is how many invocations of one message may run at the same
	// time; default 8.
	Parallel int
	// FinalAnswer asks the model for one more answer, without tools, when
	// Exchanges or Tokens is reached. The turn still ends with that reason.
	FinalAnswer bool
	// Tools is how many tools a model is offered at most; the others are set
	// aside. Ensembles with few tools keep theirs, those with many share what is
	// left, each in the order of names. Default 1000.
	Tools int
	// ResultBytes bounds the bytes of one result that enter the history, those of
	// its metadata and of its contents' metadata included; default 1 MiB. What is
	// over is cut, metadata first that does not fit beside the contents, and a line
	// says how much.
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

// reached names the limit that allows no further exchange, if one does. It
// wants limits with their defaults.
func (l Limits) reached(exchanges int, usage canister.Usage) Reason {
	switch {
	case l.Exchanges > 0 && exchanges >= l.Exchanges:
		return ReasonExchanges
	case l.Tokens > 0 && usage.Total() >= l.Tokens:
		return ReasonTokens
	}
	return ""
}
