// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"time"
)

// Kind names a kind of canister, as it stands in the JSON form.
type Kind string

// The six kinds of messages, and the three of a log's own; see [Message].
const (
	KindUser       Kind = "user"
	KindAssistant  Kind = "assistant"
	KindSupervisor Kind = "supervisor"
	KindDocument   Kind = "document"
	KindInvocation Kind = "invocation"
	KindResult     Kind = "result"

	KindIntent Kind = "intent"
	KindWait   Kind = "wait"
	KindAnswer Kind = "answer"
)

// Canister is one message of a conversation: [User], [Assistant],
// [Supervisor], [Document], [Invocation] or [Result]. Beside the messages stands
// what a conversation that outlives its process has to know, and the model is
// never told: [Intent], [Wait] and [Answer]. Each is held by value. The set is
// closed.
type Canister interface {
	// Header returns the identity, time and metadata of the canister.
	Header() Head
	// Kind returns the name of the kind.
	Kind() Kind

	withHead(Head) Canister // closes the set; see WithHead
}

// Fields are JSON members by name. Each value is one valid, compact JSON text;
// the maps that canisters carry are shared between copies and must not be
// changed once the canister is in a history.
type Fields map[string]json.RawMessage

// Extra is what canisters and contents carry beside their own fields.
type Extra struct {
	// Metadata belongs to programs: the model never sees it, and this module
	// only writes members that its documentation names. May be nil.
	Metadata Fields
	// Unknown holds members of the JSON form that this version of the package
	// does not know, so that reading and writing a newer program's history
	// loses nothing. May be nil.
	Unknown Fields
}

// Head is what every canister has.
type Head struct {
	// ID is the identity, unique within the conversation. The converse loop
	// gives one to each canister that enters a history without.
	ID string
	// Time is when the canister came to be. The JSON form keeps the instant
	// to the nanosecond, in UTC.
	Time time.Time
	Extra
}

// Header returns the head itself; embedding it is half of being a [Canister].
func (h Head) Header() Head { return h }

// User is what a person, or the program in a person's place, says.
type User struct {
	Head
	Content []Content
}

// Assistant is what the model says in one exchange. Its Content may be empty:
// a model that only asks for tools says nothing. The invocations that it asks
// for follow as [Invocation] canisters.
type Assistant struct {
	Head
	Content []Content
	// Model is the name of the model as its server reported it, if it did.
	Model string
	// Finish says why the model stopped.
	Finish Finish
	// Usage is what the exchange cost; nil when the server did not say.
	Usage *Usage
}

// Supervisor is an instruction that stands above the conversation, which
// model APIs call a system or developer message.
type Supervisor struct {
	Head
	Content []Content
}

// Document is reference material: neither a person nor the model says it.
type Document struct {
	Head
	// Title names the material for the model. May be empty.
	Title string
	// URI says where it came from. May be empty.
	URI     string
	Content []Content
}

// Invocation is the model's request to call one tool.
type Invocation struct {
	Head
	// Message is the ID of the [Assistant] canister that asked.
	Message string
	// CallID is the model's own name for the call, by which its API matches
	// results with calls. The model adapter makes one up where the model gave
	// none, or one that another call of the message has.
	CallID string
	// Name is the tool's name as the model was told and wrote it.
	Name string
	// Arguments is the text that the model wrote for the arguments: a JSON
	// object if the model did well, and anything else if it did not.
	Arguments string
}

// Result is what came of one [Invocation]: exactly one Result for each.
type Result struct {
	Head
	// Invocation is the ID of the [Invocation] that is answered.
	Invocation string
	Content    []Content
	// Code is empty when the tool succeeded, and otherwise one of the failure
	// codes of the invoker package; Content then says in words what happened.
	Code string
	// Retryable says of a failure that trying again can help.
	Retryable bool
}

// Failed reports whether the tool failed: whether there is a Code.
func (c Result) Failed() bool { return c.Code != "" }

// Finish says why a model stopped.
type Finish string

// The reasons to stop. A server's own reason that fits none of them is kept
// as the server wrote it.
const (
	FinishStop          Finish = "stop"           // the model was done
	FinishInvocations   Finish = "invocations"    // the model asks for tools
	FinishLength        Finish = "length"         // the limit of output tokens
	FinishContentFilter Finish = "content_filter" // the server held text back
	FinishRefusal       Finish = "refusal"        // the model declined
	FinishCancelled     Finish = "cancelled"      // nothing was asked of it: a person ended the turn
)

// Usage counts the tokens of one exchange, or the sum of several.
type Usage struct {
	Input     int64 `json:"input,omitzero"`     // tokens of the request, cached ones included
	Cached    int64 `json:"cached,omitzero"`    // of Input, those that the server had in its prompt cache
	Output    int64 `json:"output,omitzero"`    // tokens of the answer, reasoning included
	Reasoning int64 `json:"reasoning,omitzero"` // of Output, those spent on reasoning
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:     u.Input + v.Input,
		Cached:    u.Cached + v.Cached,
		Output:    u.Output + v.Output,
		Reasoning: u.Reasoning + v.Reasoning,
	}
}

// Total returns the tokens of request and answer together.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Kind returns [KindUser].
func (User) Kind() Kind { return KindUser }

// Kind returns [KindAssistant].
func (Assistant) Kind() Kind { return KindAssistant }

// Kind returns [KindSupervisor].
func (Supervisor) Kind() Kind { return KindSupervisor }

// Kind returns [KindDocument].
func (Document) Kind() Kind { return KindDocument }

// Kind returns [KindInvocation].
func (Invocation) Kind() Kind { return KindInvocation }

// Kind returns [KindResult].
func (Result) Kind() Kind { return KindResult }

func (c User) withHead(h Head) Canister       { c.Head = h; return c }
func (c Assistant) withHead(h Head) Canister  { c.Head = h; return c }
func (c Supervisor) withHead(h Head) Canister { c.Head = h; return c }
func (c Document) withHead(h Head) Canister   { c.Head = h; return c }
func (c Invocation) withHead(h Head) Canister { c.Head = h; return c }
func (c Result) withHead(h Head) Canister     { c.Head = h; return c }

// WithHead returns c with h in place of its head.
func WithHead(c Canister, h Head) Canister { return c.withHead(h) }

// ContentOf returns what c carries: nil for an [Invocation], an [Intent] and a
// [Wait], which carry nothing. The slice is that of c.
func ContentOf(c Canister) []Content {
	switch c := c.(type) {
	case User:
		return c.Content
	case Assistant:
		return c.Content
	case Supervisor:
		return c.Content
	case Document:
		return c.Content
	case Result:
		return c.Content
	case Answer:
		return c.Content
	}
	return nil
}

// WithContent returns c with content in place of what it carries. What carries
// nothing stays as it is.
func WithContent(c Canister, content []Content) Canister {
	switch c := c.(type) {
	case User:
		c.Content = content
		return c
	case Assistant:
		c.Content = content
		return c
	case Supervisor:
		c.Content = content
		return c
	case Document:
		c.Content = content
		return c
	case Result:
		c.Content = content
		return c
	case Answer:
		c.Content = content
		return c
	}
	return c
}
