// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Model is one language model behind one API. Who writes one runs the suite of
// package conversetest over it. Exchange may be called concurrently.
type Model interface {
	// Exchange sends a request and yields what comes back: any number of
	// [Delta] and [Retry] events, and last one [Reply], after which the
	// sequence ends. A failure ends the sequence with an error, which is a
	// [*ModelError] wherever the API had a say in it; what was yielded before
	// is then not part of the history. Leaving the loop, or the end of ctx,
	// gives the exchange up and frees everything it holds.
	Exchange(ctx context.Context, request *Request) iter.Seq2[ModelEvent, error]
}

// Binder is a [Model] that works faster when it knows that it serves one
// conversation, for example because it keeps the history in the form that its
// API wants. A conversation binds such a model once.
type Binder interface {
	Model
	// Bind returns a model for the exchanges of one conversation, one at a
	// time, each of whose histories usually begins with the one before. It
	// gives the same answers to the same requests as the model itself, as long
	// as a canister does not change: what it kept is known by the IDs alone.
	// What a conversation tells its model only ever grows, until a compaction,
	// behind which it is another from some place on. A result that is cut then
	// has another ID.
	Bind() Model
}

// Screener is a [Model] that cannot offer every tool, for example because its
// API refuses some schemas.
type Screener interface {
	Model
	// Screen returns why the tool cannot be offered, as a clause that reads
	// well after "set aside: ", or nil when it can. Calls may be concurrent;
	// the answer depends on the definition alone.
	Screen(definition *invoker.Definition) error
}

// Screen returns why a model cannot be offered a tool, as [Screener] does: because
// the tool is not for models, or because the model's screener says so, which may be
// nil.
func Screen(definition *invoker.Definition, screener Screener) error {
	if !definition.IsForModels() {
		return errNotForModels
	}
	if screener == nil {
		return nil
	}
	return screened(screener, definition)
}

var errNotForModels = errors.New("it is for its app alone and not for models (_meta.ui.visibility); it can be called by hand")

// Limiter is a [Model] whose API has limits for the tools of a request.
type Limiter interface {
	Model
	// MaxTools is how many tools a request may have; 0 is no limit. The others are
	// set aside. The answer is always the same.
	MaxTools() int
	// Shortened returns what the model leaves out of a tool that is too long for
	// its API, as a clause that reads well after "shortened: ", or nothing. Calls
	// may be concurrent.
	Shortened(definition *invoker.Definition) string
}

// Describer is a [Model] that says which model it is, for those who watch.
type Describer interface {
	Model
	// Describe returns what the spans of its exchanges say of it. A
	// conversation asks once, when it is made.
	Describe() telemetry.ModelInfo
}

// Purpose says what a request is for.
type Purpose string

// The purposes of requests. The zero value is PurposeAnswer.
const (
	PurposeAnswer      Purpose = "answer"       // the next message of the conversation
	PurposeFinalAnswer Purpose = "final_answer" // the same, at a limit, without calls
	PurposeSummary     Purpose = "summary"      // what takes the place of its older part
	PurposeSampling    Purpose = "sampling"     // the answer to a tool that asks the model
)

// Answers reports whether what comes back becomes a message of the conversation.
// Only such a request has the options of the model that say what an answer looks
// like, for example that it is JSON of a schema.
func (p Purpose) Answers() bool {
	return p == "" || p == PurposeAnswer || p == PurposeFinalAnswer
}

// Request is what a model is asked. The model changes nothing in it.
type Request struct {
	// Purpose says what the request is for.
	Purpose Purpose
	// History is the conversation so far. It passes [canister.Check].
	History []canister.Canister
	// Tools are the tools on offer, under the names that the model may use,
	// in an order that stays the same as long as the tools do.
	Tools *Toolset
	// NoInvocations asks the model to answer without calling a tool. The
	// tools are still described, so that the history makes sense and the
	// prompt stays cached.
	NoInvocations bool
	// RequireInvocation asks the model to call one tool at least. A model whose API
	// has no such thing leaves it out.
	RequireInvocation bool
	// MaxTokens bounds the tokens of the answer, beside what the model is set
	// to itself: the lesser counts. 0 leaves it to the model.
	MaxTokens int64
	// Temperature, from 0 up, and Stop, texts at which the model stops, stand
	// in place of what the model is set to itself; nil leaves it to the model.
	// A model whose API has no such thing leaves them out.
	Temperature *float64
	Stop        []string
	// NewID makes identities for the canisters of the reply.
	NewID func() string
}

// Toolset is an unchanging list of tools that a model is offered. A model may
// keep what it made of a Toolset for as long as it is given the same one.
type Toolset struct {
	// Definitions are sorted by name; the names are those of the codec in
	// package ensemble, fit for every model API.
	Definitions []*invoker.Definition
}

// ModelEvent is what a model yields during an exchange: [Delta], [Retry] or
// [Reply]. The set is closed.
type ModelEvent interface{ modelEvent() }

// Delta is a piece of the answer as it streams in.
type Delta struct {
	// Text is appended to the answer.
	Text string
	// Reasoning is appended to what the model shows of its reasoning, which
	// is no part of the answer.
	Reasoning string
	// Invocation is set when a call begins to stream in: the tool's name as far
	// as it is known. It becomes an [InvocationAnnounced].
	Invocation string
}

// Retry says that an attempt to reach the model failed and that another will
// be made.
type Retry struct {
	Attempt int           // the number of the attempt that failed, from 1
	Wait    time.Duration // before the next attempt
	Err     error         // why it failed
}

// Reply is the whole answer.
type Reply struct {
	// Message is the answer, with Head.ID from Request.NewID; its time is set
	// by the conversation.
	Message canister.Assistant
	// Invocations are the calls that the model asks for, in its order, each
	// with an ID from Request.NewID. Their Message is the ID of Message, their
	// CallIDs differ. A reply that breaks these rules is an error.
	Invocations []canister.Invocation
}

func (Delta) modelEvent() {}
func (Retry) modelEvent() {}
func (Reply) modelEvent() {}
