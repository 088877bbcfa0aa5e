// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Model is one language model with one API. Test an implementation with the suite of
// package conversetest. Exchange may be called concurrently.
type Model interface {
	// Exchange sends a request and yields the response: any number of [Delta], [Retry]
	// and [Fallback] events, and finally one [Reply], which ends the sequence. A failure ends
	// the sequence with an error, a [*ModelError] if it came from the API; everything
	// yielded before is then not part of the history. Leaving the loop, or the end of
	// ctx, cancels the exchange and frees everything it holds.
	Exchange(ctx context.Context, request *Request) iter.Seq2[ModelEvent, error]
}

// Binder is a [Model] that works faster when it knows that it serves one
// conversation, for example because it keeps the history in the form that its
// API wants. A conversation binds such a model once.
type Binder interface {
	Model
	// Bind returns a model for the exchanges of one conversation, one at a time, each
	// with a history that usually begins with the previous one. It gives the same
	// answers to the same requests as the model itself, as long as canisters do not
	// change: it recognises canisters by their IDs alone. The history in the requests
	// of a conversation only grows, until a compaction, after which it differs from
	// some position on. A result that is cut then has another ID.
	Bind() Model
}

// Screener is a [Model] that cannot offer every tool, for example because its
// API refuses some schemas.
type Screener interface {
	Model
	// Screen returns why the tool cannot be offered, as a clause that reads well after
	// "set aside: ", or nil when it can. Calls may be concurrent; the answer depends on
	// the definition alone.
	Screen(definition *invoker.Definition) error
}

// Limiter is a [Model] whose API limits the tools of a request.
type Limiter interface {
	Model
	// MaxTools is how many tools a request may have; 0 means no limit. The others are
	// set aside. It always returns the same number.
	MaxTools() int
	// Shortened returns which parts of a tool the model leaves out because the tool is
	// too long for its API, as a clause that reads well after "shortened: ", or "".
	// Calls may be concurrent.
	Shortened(definition *invoker.Definition) string
}

// Describer is a [Model] that describes itself for telemetry.
type Describer interface {
	Model
	// Describe returns the description of the model for the spans of its exchanges. A
	// conversation calls it once, when it is made.
	Describe() telemetry.ModelInfo
}

// Purpose is the purpose of a request.
type Purpose string

// The purposes of requests. The zero value is PurposeAnswer.
const (
	PurposeAnswer      Purpose = "answer"       // the next message of the conversation
	PurposeFinalAnswer Purpose = "final_answer" // the same, at a limit, without calls
	PurposeSummary     Purpose = "summary"      // a summary that replaces the older part of the conversation
	PurposeSampling    Purpose = "sampling"     // the answer to a tool that asks the model
)

// Answers reports whether the reply becomes a message of the conversation. Options of
// the model for the form of an answer, for example JSON of a schema, apply only to such
// requests.
func (p Purpose) Answers() bool {
	return p == "" || p == PurposeAnswer || p == PurposeFinalAnswer
}

// Request is a request to a model. The model must not change it.
type Request struct {
	// Purpose is the purpose of the request.
	Purpose Purpose
	// History is the conversation so far. It passes [sequence.Check].
	History []canister.Canister
	// Tools are the tools on offer, under the names that the model may use,
	// in an order that stays the same as long as the tools do.
	Tools *Toolset
	// NoInvocations asks the model to answer without calling a tool. The
	// tools are still described, so that the history makes sense and the
	// prompt stays cached.
	NoInvocations bool
	// RequireInvocation asks the model to call at least one tool. A model whose API
	// does not support this ignores it.
	RequireInvocation bool
	// MaxTokens bounds the tokens of the answer in addition to the model's own setting:
	// the lower bound applies. 0 leaves it to the model.
	MaxTokens int64
	// Temperature, from 0 up, and Stop, texts that end the answer, override the model's
	// own settings; nil leaves them to the model. A model whose API does not support
	// them ignores them.
	Temperature *float64
	Stop        []string
	// NewID makes IDs for the canisters of the reply.
	NewID func() string
}

// Toolset is an immutable list of tools that a model is offered. A model may cache data
// derived from a Toolset for as long as it is given the same one.
type Toolset struct {
	// Definitions are sorted by name, except that the tools of the client and then the tools
	// that servers have added during the turn come last, the newest at the end. The names are
	// valid for every model API; all but the client's come from the codec in package ensemble.
	Definitions []*invoker.Definition
}

// ModelEvent is an event of an exchange: [Delta], [Retry], [Fallback] or [Reply]. The set
// is closed.
type ModelEvent interface{ modelEvent() }

// Delta is a piece of the answer as it streams in.
type Delta struct {
	// Text is appended to the answer.
	Text string
	// Reasoning is appended to the reasoning that the model shows, which is not part of
	// the answer.
	Reasoning string
	// Invocation is set when a call begins to stream in: the tool's name as far as it
	// is known. It becomes an [InvocationAnnounced].
	Invocation string
}

// Retry reports that an attempt to reach the model failed and that another will be
// made.
type Retry struct {
	Attempt int           // the number of the attempt that failed, from 1
	Wait    time.Duration // before the next attempt
	Err     error         // why it failed
}

// Fallback reports that a model of a [Chain] is unavailable, and that the exchange goes
// on with another one.
type Fallback struct {
	From, To string // the names of the models
	Err      error  // why From is unavailable
}

// Reply is the whole answer.
type Reply struct {
	// Message is the answer, with Head.ID from Request.NewID; its time is set
	// by the conversation.
	Message canister.Assistant
	// Invocations are the calls of the model, in its order, each with an ID from
	// Request.NewID. Their Message is the ID of Message, and their CallIDs are
	// distinct. A reply that breaks these rules is an error.
	Invocations []canister.Invocation
}

func (Delta) modelEvent()    {}
func (Retry) modelEvent()    {}
func (Fallback) modelEvent() {}
func (Reply) modelEvent()    {}
