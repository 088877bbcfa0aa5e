// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"

	"github.com/consort-go/consort/canister"
)

// Library is an ability that a [Connection] may have: it offers resources,
// which hold material to read, and prompts, which are messages made ready. All
// methods may be called concurrently. Errors are as those of invokers: an
// [invoker.Failure] says what came of it, NOT_FOUND above all. Nothing here has
// an effect beyond its answer, so that what fails because the connection was
// lost is asked again over a fresh one.
type Library interface {
	// Resources, Templates and Prompts ask for what is offered now, all pages
	// of it. The contexts carry nothing of whoever asked, since what is listed
	// is kept for all.
	Resources(ctx context.Context) ([]Resource, error)
	Templates(ctx context.Context) ([]Template, error)
	Prompts(ctx context.Context) ([]Prompt, error)
	// Read returns what a resource holds, which may be several parts.
	Read(ctx context.Context, uri string) ([]canister.ResourceContent, error)
	// Get returns the messages of a prompt of this name.
	Get(ctx context.Context, name string, arguments map[string]string) (*Messages, error)
	// Complete proposes values; one that has none to propose returns none.
	Complete(ctx context.Context, request *CompletionRequest) (*Completion, error)
	// Subscribe asks to be told when a resource is updated, until Unsubscribe.
	// The connection is asked once at a time for each resource. It fails if
	// there is no such resource, or if nobody can tell.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	// Listen is called once, before anything else, with the function that
	// takes the news of this connection. It may be called from any goroutine
	// and does not wait. Listen returns at once.
	//
	// Of tools, [ToolsChanged] comes in addition to Connection.Changed, and
	// before the result of a call that the server sent after its word of the
	// change: a conversation then offers the new tools in its next exchange.
	Listen(heard func(News))
}

// Resource describes material that can be read.
type Resource struct {
	Ensemble    string // that offers it; filled in by the Ensemble
	URI         string
	Name        string
	Title       string // for people; may be empty
	Description string
	MIME        string // media type; may be empty
	Size        *int64 // bytes; nil when not known
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// Template describes resources by the form of their URIs.
type Template struct {
	Ensemble    string // that offers it; filled in by the Ensemble
	URI         string // a URI template (RFC 6570)
	Name        string
	Title       string // for people; may be empty
	Description string
	MIME        string // of all its resources; may be empty
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// Prompt describes messages that can be had for a few arguments.
type Prompt struct {
	Ensemble    string // that offers it; filled in by the Ensemble
	Name        string // its own; see FullName
	Title       string // for people; may be empty
	Description string
	Arguments   []PromptArgument
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// FullName is the name by which a roster knows the prompt; see [NameFor].
func (p *Prompt) FullName() string { return NameFor(p.Ensemble, p.Name) }

// PromptArgument describes an argument of a [Prompt].
type PromptArgument struct {
	Name        string
	Title       string // for people; may be empty
	Description string
	Required    bool
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// Messages are what a prompt comes to; see [Messages.Canisters].
type Messages struct {
	Description string // may be empty
	Messages    []PromptMessage
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // "user" or "assistant"
	Content []canister.Content
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// CompletionRequest asks for values that an argument of a prompt, or a variable
// of a template, may have.
type CompletionRequest struct {
	// Prompt is the name of the prompt: its own where an ensemble is asked, its
	// full name where a roster is. Empty if Template is set.
	Prompt string
	// Template is the URI template. Empty if Prompt is set.
	Template string
	// Argument is the name of the argument or variable, and Value the
	// beginning of the value.
	Argument, Value string
	// Others are the arguments that have a value already. May be nil.
	Others map[string]string
}

// Completion is what a value may be.
type Completion struct {
	Values []string // the best first
	Total  int      // how many there are in all; 0 when not said
	More   bool     // there are more than Values has
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// News is word that something changed.
type News struct {
	Ensemble string // whose news it is; filled in by the Ensemble
	Kind     NewsKind
	URI      string // of the resource that was updated; else empty
}

// NewsKind says what changed.
type NewsKind string

// The kinds of news.
const (
	ToolsChanged     NewsKind = "tools"     // which tools there are, or how they are defined
	ResourcesChanged NewsKind = "resources" // which resources and templates there are
	PromptsChanged   NewsKind = "prompts"   // which prompts there are
	ResourceUpdated  NewsKind = "updated"   // what a resource holds, to which somebody subscribed
)
