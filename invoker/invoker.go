// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
)

// Invoker is one tool that can be called. It does not know the ensemble that it
// belongs to. All methods may be called concurrently.
type Invoker interface {
	// Definition returns the description of the tool. It returns the same value every
	// time, which callers must not change.
	Definition() *Definition
	// Invoke runs the tool once. Any failure of the tool is returned as an error;
	// [AsFailure] converts it for the model. The Output is valid only if the error is
	// nil. Invoke returns soon after ctx ends, provided that the underlying function
	// does: it does not leave work running in the background.
	Invoke(ctx context.Context, call *Call) (Output, error)
}

// Definition describes a tool to a model and to programs.
type Definition struct {
	// Name is the name of the tool at its source. It may be any text except the empty
	// one; the ensemble package derives names that models can use.
	Name string
	// Title is a name for people; may be empty.
	Title string
	// Description explains the tool to the model.
	Description string
	// InputSchema is the JSON Schema of the arguments, an object, as its author gave it,
	// without the arguments that only the program may set ([Trusted]).
	InputSchema json.RawMessage
	// OutputSchema is the JSON Schema of the structured result; may be nil.
	OutputSchema json.RawMessage
	// Hints describe the tool's behavior as declared by its author.
	Hints Hints
	// Exclusive requests that no other invocation of the same message runs at the
	// same time as this tool.
	Exclusive bool
	// Needs are the names of the trusted values that the tool requires, sorted; see
	// [Trusted]. They are not arguments. May be nil.
	Needs []string
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
}

// CategoryKey is the member of a definition's metadata that holds the tool's
// category, a JSON string. The name comes from the gRPC tool service, which has
// categories. Tools of MCP servers have none.
const CategoryKey = "grpc/category"

// Category returns the tool's category from its metadata, or an empty string.
func (d *Definition) Category() string {
	var category string
	_ = json.Unmarshal(d.Metadata[CategoryKey], &category) // ignores values that are not strings
	return category
}

// IsForModels reports whether the tool may be offered to models. A tool that is
// only for its user interface may not: its list _meta.ui.visibility, which MCP
// tools have in their metadata as mcp/_meta, lacks "model" (MCP Apps, SEP-1865).
// A program may call it.
func (d *Definition) IsForModels() bool {
	var meta struct {
		UI struct {
			Visibility []string `json:"visibility"`
		} `json:"ui"`
	}
	if json.Unmarshal(d.Metadata["mcp/_meta"], &meta) != nil { // missing or of the wrong type
		return true
	}
	return len(meta.UI.Visibility) == 0 || slices.Contains(meta.UI.Visibility, "model")
}

// Hints describe how a tool behaves. They are claims of the tool's author that a
// program may or may not trust. Meanings and defaults are as in MCP's tool
// annotations.
type Hints struct {
	// ReadOnly: the tool changes nothing.
	ReadOnly bool
	// Idempotent: a second call with the same arguments changes nothing more.
	Idempotent bool
	// Destructive: the tool can destroy the data that it changes. Nil means not
	// declared, which counts as true unless the tool is read-only.
	Destructive *bool
	// OpenWorld: the tool interacts with external systems, such as the web. Nil means
	// not declared, which counts as true.
	OpenWorld *bool
}

// MayDestroy reports whether the tool may destroy data, after applying defaults.
func (h Hints) MayDestroy() bool {
	return !h.ReadOnly && (h.Destructive == nil || *h.Destructive)
}

// Repeatable reports whether the tool declares that a second call does no harm: it is
// read-only or idempotent. Whether to believe that is for the caller to decide.
func (h Hints) Repeatable() bool { return h.ReadOnly || h.Idempotent }

// Call is one call of an invoker.
type Call struct {
	// ID identifies the call. It is the same on every attempt, so that it can serve
	// as an idempotency key. A conversation derives it from its own ID and the
	// invocation's, so a call of its fork has a different ID. May be empty.
	ID string
	// Arguments is the JSON text of the arguments. Empty means {}.
	Arguments json.RawMessage
	// Progress receives reports while the call runs; nil if the caller does not
	// listen. It may be called from any goroutine, also after Invoke has returned, and does
	// not block for long. Package ensemble drops such late reports.
	Progress func(Progress)
	// Pause suspends the time limits of the call until resume is called; nil if it
	// has no limits. Use [Call.Hold].
	Pause func() (resume func())
	// Person answers questions; nil if no person can be asked. Use [Call.Ask].
	Person func(context.Context, *ElicitRequest) (*ElicitResult, error)
	// Model answers as the model of the conversation; nil if no model can be asked.
	// Use [Call.Sample].
	Model func(context.Context, *SampleRequest) (*SampleResult, error)
	// ModelTools means that Model accepts requests with tools
	// ([SampleRequest].Tools). It is false by default: such a request is refused.
	ModelTools bool
	// Tools calls other tools of the conversation; nil if the tool may not: the call is
	// not of a conversation, it was itself requested by a tool, or the tool is not
	// trusted to be read-only or idempotent.
	Tools Tools
	// Log receives the tool's log entries; nil if the caller does not listen. It may
	// be called from any goroutine and does not block for long. Use [Call.Note].
	Log func(LogEntry)
}

// Report passes p to the listener of the call, if there is one.
func (c *Call) Report(p Progress) {
	if c != nil && c.Progress != nil {
		c.Progress(p)
	}
}

// Hold suspends the time limits of the call while the tool waits for something
// outside its control, such as a person's answer. The caller must limit that wait
// itself. Calling resume continues the limits; further calls of the same resume
// do nothing. A call may be held several times at once. Hold returns immediately
// and never returns nil, even for a nil call.
func (c *Call) Hold() (resume func()) {
	if c == nil || c.Pause == nil {
		return func() {}
	}
	return sync.OnceFunc(c.Pause())
}

// Progress reports how much of a call is done.
type Progress struct {
	Done    float64 // in the tool's own unit; grows from report to report
	Total   float64 // in the same unit; 0 if unknown
	Message string  // for people; may be empty
	// Partial is the next piece of the result, after the pieces of earlier reports;
	// may be nil. It is for people: the final result repeats it.
	Partial []canister.Content
}

// Output is the result of a tool that succeeded.
//
// Its contents belong to the caller once the function has returned. If the
// function continues to write to its slices or maps, there is a data race, and
// the content of the history and of the model's input is undefined.
type Output struct {
	// Content is for the model and for programs. It may have both structured content
	// and text with the same information.
	Content []canister.Content
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
}

type callKey struct{}

// WithCall returns a context that carries call, for [CallFrom].
func WithCall(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallFrom returns the call that an invoker's function is running for, or nil if
// ctx carries no call. A typed function uses it to get the call's ID and to
// report progress.
func CallFrom(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}
