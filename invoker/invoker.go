// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
)

// Invoker is one callable tool. It knows nothing of the ensemble that it
// belongs to. All methods may be called concurrently.
type Invoker interface {
	// Definition describes the tool. It returns the same value every time,
	// which callers must not change.
	Definition() *Definition
	// Invoke runs the tool once. A failure of the tool, of whatever sort, is an
	// error; [AsFailure] says what the model is told of it. The Output counts
	// only when the error is nil. Invoke returns soon after ctx ends, if the
	// function behind it does: it does not leave work running unseen.
	Invoke(ctx context.Context, call *Call) (Output, error)
}

// Definition describes a tool to a model and to programs.
type Definition struct {
	// Name is what the tool is called where it comes from. Any text but the
	// empty one; names that models can use are the ensemble package's business.
	Name string
	// Title is a name for people; may be empty.
	Title string
	// Description tells the model what the tool does.
	Description string
	// InputSchema is the JSON Schema of the arguments, an object; exactly as
	// its author gave it.
	InputSchema json.RawMessage
	// OutputSchema is the JSON Schema of the structured result; nil if there
	// is none.
	OutputSchema json.RawMessage
	// Hints say how the tool behaves, as far as its author says.
	Hints Hints
	// Exclusive asks that no other invocation of the same message runs while
	// this tool does.
	Exclusive bool
	// Needs are the names of the trusted values that the tool cannot do
	// without, sorted; see [Trusted]. They are no arguments. May be nil.
	Needs []string
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
}

// CategoryKey is the member of a definition's metadata that has the tool's
// category, a JSON string. The name comes from the tool service over gRPC, which
// has categories; a tool of MCP may have it in its _meta.
const CategoryKey = "grpc/category"

// Category returns the category that the tool is of, as its metadata says; empty
// if it is of none.
func (d *Definition) Category() string {
	var category string
	_ = json.Unmarshal(d.Metadata[CategoryKey], &category) // what is no string is no category
	return category
}

// IsForModels reports whether models may be offered the tool. One that is there
// only for the user interface that belongs to it may not: the list
// _meta.ui.visibility, which a tool of MCP has in its metadata as mcp/_meta, lacks
// "model" (MCP Apps, SEP-1865). A program may call it.
func (d *Definition) IsForModels() bool {
	var meta struct {
		UI struct {
			Visibility []string `json:"visibility"`
		} `json:"ui"`
	}
	if json.Unmarshal(d.Metadata["mcp/_meta"], &meta) != nil { // nothing, or of the wrong type
		return true
	}
	return len(meta.UI.Visibility) == 0 || slices.Contains(meta.UI.Visibility, "model")
}

// Hints say how a tool behaves. They are claims of the tool's author, which a
// program may or may not trust. The meanings and the defaults are those of
// MCP's tool annotations.
type Hints struct {
	// ReadOnly: the tool changes nothing.
	ReadOnly bool
	// Idempotent: a second call with the same arguments changes nothing more.
	Idempotent bool
	// Destructive: what the tool changes may be lost. Nil when not said, which
	// means that it may, unless the tool is read-only.
	Destructive *bool
	// OpenWorld: the tool deals with things outside, such as the web. Nil when
	// not said, which means that it does.
	OpenWorld *bool
}

// MayDestroy reports whether the tool may lose something, defaults applied.
func (h Hints) MayDestroy() bool {
	return !h.ReadOnly && (h.Destructive == nil || *h.Destructive)
}

// Repeatable reports whether a call may be made twice: the tool says that it
// is read-only or idempotent.
func (h Hints) Repeatable() bool { return h.ReadOnly || h.Idempotent }

// Call is one call of an invoker.
type Call struct {
	// ID is the identity of the call, the same on every attempt, so that it can
	// serve as an idempotency key. A conversation makes it of its own identity and
	// that of the invocation: a call of its fork is another one. May be empty.
	ID string
	// Arguments is the JSON text of the arguments. Empty means {}.
	Arguments json.RawMessage
	// Progress takes reports while the call runs; nil when nobody listens.
	// It may be called from any goroutine and does not block for long;
	// reports after Invoke has returned are dropped.
	Progress func(Progress)
	// Pause stops the time limits of the call until resume is called; nil when
	// it has none. Use [Call.Hold].
	Pause func() (resume func())
	// Person answers questions; nil when nobody can be asked. Use [Call.Ask].
	Person func(context.Context, *ElicitRequest) (*ElicitResult, error)
	// Model answers as the model of the conversation; nil when there is none.
	// Use [Call.Sample].
	Model func(context.Context, *SampleRequest) (*SampleResult, error)
	// ModelTools says that Model takes requests with tools ([SampleRequest].Tools).
	// False by default: such a request is refused.
	ModelTools bool
	// Log takes what the tool logs; nil when nobody listens. It may be called
	// from any goroutine and does not block for long. Use [Call.Note].
	Log func(LogEntry)
}

// Report passes p to the listener of the call, if there is one.
func (c *Call) Report(p Progress) {
	if c != nil && c.Progress != nil {
		c.Progress(p)
	}
}

// Hold stops the time limits of the call while something is waited for that is
// not the tool's to hurry, such as a person's answer; whoever holds bounds that
// wait. Calling resume lets them go on, the second time it does nothing. Calls
// may be held several times at once. Hold returns at once and never nil, also
// for a nil call.
func (c *Call) Hold() (resume func()) {
	if c == nil || c.Pause == nil {
		return func() {}
	}
	return sync.OnceFunc(c.Pause())
}

// Progress is a report of how far a call has come.
type Progress struct {
	Done    float64 // in the tool's own unit; grows from report to report
	Total   float64 // in the same unit; 0 when not known
	Message string  // for people; may be empty
	// Partial is what the tool has to show already, a piece after those of the
	// reports before; may be nil. It is for people: the result repeats it.
	Partial []canister.Content
}

// Output is what a tool returns when it succeeds.
//
// What it holds belongs to the caller as soon as the function has returned: a
// function that goes on writing to a slice or a map of it has a data race, and what
// reaches the history and the model is not defined.
type Output struct {
	// Content is for the model and for programs. Structured content and text
	// that says the same may stand side by side.
	Content []canister.Content
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
}

type callKey struct{}

// WithCall returns a context that carries call, for [CallFrom].
func WithCall(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallFrom returns the call that the function of an invoker is running for,
// or nil outside of one. A typed function learns the call's identity from it
// and reports progress through it.
func CallFrom(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}
