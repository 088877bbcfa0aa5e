// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"time"
)

// Kind names a kind of canister as it appears in the JSON form.
type Kind string

// The six kinds of messages, and three kinds that are only kept in the log; see
// [Message].
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

// Canister is one entry of a conversation. Six kinds are messages: [User],
// [Assistant], [Supervisor], [Document], [Invocation] and [Result]. Three more
// record the state that a conversation needs to outlive its process and are never
// sent to the model: [Intent], [Wait] and [Answer]. Each is held by value. The
// set is closed.
type Canister interface {
	// Header returns the ID, time and metadata of the canister.
	Header() Head
	// Kind returns the name of the kind.
	Kind() Kind

	withHead(Head) Canister // closes the set; see WithHead
}

// Fields maps the names of JSON members to their values. Each value is one valid,
// compact JSON text. Copies of a canister share these maps; they must not be
// changed once the canister is in a history.
type Fields map[string]json.RawMessage

// Extra holds the metadata and the unknown members of a canister or content.
type Extra struct {
	// Metadata belongs to programs: the model never sees it, and this module only
	// writes members that its documentation names. May be nil.
	Metadata Fields
	// Unknown holds members of the JSON form that this version of the package does
	// not know, so that reading and writing a newer program's history loses nothing.
	// May be nil.
	Unknown Fields
}

// Head holds the fields that every canister has.
type Head struct {
	// ID is unique within the conversation. The converse loop assigns one to each
	// canister that enters a history without it.
	ID string
	// Time is when the canister was created. The JSON form keeps the instant to the
	// nanosecond, in UTC.
	Time time.Time
	Extra
}

// Header returns h. Embedding Head gives a type one of the methods of [Canister].
func (h Head) Header() Head { return h }

// User is a message from a person, or from a program acting for one.
type User struct {
	Head
	Content []Content
}

// Assistant is the model's message in one exchange. Content may be empty when the
// model only calls tools. The calls follow as [Invocation] canisters.
type Assistant struct {
	Head
	Content []Content
	// Model is the name of the model as its server reported it, or empty.
	Model string
	// Finish is the reason why the model stopped.
	Finish Finish
	// Usage is the number of tokens that the exchange used; nil if the server did not
	// report it.
	Usage *Usage
}

// Supervisor is an instruction that takes precedence over the conversation. Model
// APIs call it a system or developer message.
type Supervisor struct {
	Head
	Content []Content
}

// Document is reference material, which comes neither from a person nor from the
// model.
type Document struct {
	Head
	// Title names the material for the model. May be empty.
	Title string
	// URI is the address of the source. May be empty.
	URI     string
	Content []Content
}

// Invocation is the model's request to call one tool.
type Invocation struct {
	Head
	// Message is the ID of the [Assistant] canister that contains the request.
	Message string
	// CallID is the model's own name for the call; its API uses it to match results
	// with calls. The model adapter makes one up if the model gave none or used the
	// name of another call of the same message.
	CallID string
	// Name is the tool's name as the model was given it and wrote it.
	Name string
	// Arguments is the text that the model wrote as arguments. It should be a JSON
	// object but can be anything.
	Arguments string
	// Parent is the ID of the invocation whose tool made this call; empty if the model
	// made it. CallID is then the tool's own name for the call, and Message the Message of
	// the parent. The model sees neither this canister nor its result.
	Parent string
}

// Result is the outcome of one [Invocation]. Each Invocation has exactly one
// Result.
type Result struct {
	Head
	// Invocation is the ID of the [Invocation] that this result answers, and Parent
	// is the Parent of that invocation.
	Invocation string
	Parent     string
	Content    []Content
	// Code is empty if the tool succeeded, and otherwise one of the failure codes of
	// the invoker package; Content then describes the failure in words.
	Code string
	// Retryable means that trying again after this failure can help.
	Retryable bool
}

// Failed reports whether the tool failed, that is whether Code is set.
func (c Result) Failed() bool { return c.Code != "" }

// Finish is the reason why a model stopped.
type Finish string

// The reasons to stop. If a server's own reason matches none of them, it is kept
// as the server wrote it.
const (
	FinishStop          Finish = "stop"           // the model was done
	FinishInvocations   Finish = "invocations"    // the model calls tools
	FinishLength        Finish = "length"         // the limit of output tokens was reached
	FinishContentFilter Finish = "content_filter" // the server held text back
	FinishRefusal       Finish = "refusal"        // the model declined
	FinishCancelled     Finish = "cancelled"      // the model was not asked: a person ended the turn
)

// Usage counts the tokens of one exchange, or the sum of several.
type Usage struct {
	Input        int64 `json:"input,omitzero"`         // tokens of the request, cached ones included
	Cached       int64 `json:"cached,omitzero"`        // the part of Input that was read from the server's prompt cache
	CacheWritten int64 `json:"cache_written,omitzero"` // the part of Input that was written to the server's prompt cache
	Output       int64 `json:"output,omitzero"`        // tokens of the answer, reasoning included
	Reasoning    int64 `json:"reasoning,omitzero"`     // the part of Output that was spent on reasoning
	// Context is the number of tokens of the conversation with its answer, where that is not
	// Input and Output: an answer that took several requests has the sum of them there.
	Context int64 `json:"context,omitzero"`
}

// Add returns the sum of u and v, without a Context.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:        u.Input + v.Input,
		Cached:       u.Cached + v.Cached,
		CacheWritten: u.CacheWritten + v.CacheWritten,
		Output:       u.Output + v.Output,
		Reasoning:    u.Reasoning + v.Reasoning,
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

// WithHead returns c with its head replaced by h.
func WithHead(c Canister, h Head) Canister { return c.withHead(h) }

// ContentOf returns the content of c. It is nil for an [Invocation], an [Intent]
// and a [Wait], which have none. The slice is shared with c.
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
	default:
		return nil
	}
}

// WithContent returns c with its content replaced. A canister that has no content
// is returned unchanged.
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
	default:
		return c
	}
}
