// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"

	"github.com/consort-go/consort/canister"
)

// Library is an optional interface of a [Connection]. A library offers resources, which
// hold material to read, and prompts, which are prepared messages. All methods may be
// called concurrently. Errors are like the errors of invokers: an [invoker.Failure] has
// a code, most importantly NOT_FOUND. The methods have no side effects, so a request
// that fails because the connection was lost is repeated over a fresh one.
type Library interface {
	// Resources, Templates and Prompts list the current offer, all pages of it. Their
	// contexts carry nothing about a caller, since the lists are cached for all
	// callers.
	Resources(ctx context.Context) ([]Resource, error)
	Templates(ctx context.Context) ([]Template, error)
	Prompts(ctx context.Context) ([]Prompt, error)
	// Read returns the contents of a resource, which may be several parts.
	Read(ctx context.Context, uri string) ([]canister.ResourceContent, error)
	// Get returns the messages of the prompt with this name.
	Get(ctx context.Context, name string, arguments map[string]string) (*Messages, error)
	// Complete proposes values; it returns none if it has none to propose.
	Complete(ctx context.Context, request *CompletionRequest) (*Completion, error)
	// Subscribe asks for notifications when a resource is updated, until Unsubscribe.
	// An ensemble never subscribes to a resource twice over the same connection without
	// Unsubscribe in between. Subscribe fails if the resource does not exist, or if
	// updates cannot be reported.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	// Listen is called once, before anything else, with a function that receives the
	// news of this connection. The function may be called from any goroutine and does
	// not block. Listen returns at once.
	//
	// For tools, [ToolsChanged] comes in addition to Connection.Changed, and before the
	// result of a call that the server sent after its notification of the change, so
	// that a conversation offers the new tools in its next exchange.
	Listen(heard func(News))
}

// Resource describes material that can be read.
type Resource struct {
	Ensemble    string // the ensemble that offers it; filled in by the Ensemble
	URI         string
	Name        string
	Title       string // for people; may be empty
	Description string
	MIME        string // media type; may be empty
	Size        *int64 // bytes; nil when not known
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// Template describes a group of resources by a pattern for their URIs.
type Template struct {
	Ensemble    string // the ensemble that offers it; filled in by the Ensemble
	URI         string // a URI template (RFC 6570)
	Name        string
	Title       string // for people; may be empty
	Description string
	MIME        string // of all resources of the template; may be empty
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// Prompt describes messages that a server prepares from a few arguments.
type Prompt struct {
	Ensemble    string // the ensemble that offers it; filled in by the Ensemble
	Name        string // the ensemble's own name for it; see FullName
	Title       string // for people; may be empty
	Description string
	Arguments   []PromptArgument
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// FullName returns the name of the prompt in a roster; see [NameFor].
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

// Messages is the result of getting a prompt; see [Messages.Canisters].
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

// CompletionRequest asks for possible values of an argument of a prompt or of a
// variable of a template.
type CompletionRequest struct {
	// Prompt is the name of the prompt: its own name in a request to an ensemble, its
	// full name in a request to a roster. Empty if Template is set.
	Prompt string
	// Template is the URI template. Empty if Prompt is set.
	Template string
	// Argument is the name of the argument or variable, and Value the beginning of the
	// value.
	Argument, Value string
	// Others are the arguments that already have a value. May be nil.
	Others map[string]string
}

// Completion is a list of proposed values.
type Completion struct {
	Values []string // the best first
	Total  int      // number of all values; 0 if not known
	More   bool     // there are more values than Values contains
	// Metadata is for programs. May be nil.
	Metadata canister.Fields
}

// News reports a change.
type News struct {
	Ensemble string // the ensemble that reports it; filled in by the Ensemble
	Kind     NewsKind
	URI      string // of the resource that was updated; otherwise empty
}

// NewsKind says what changed.
type NewsKind string

// The kinds of news.
const (
	ToolsChanged     NewsKind = "tools"     // the list of tools, or a definition
	ResourcesChanged NewsKind = "resources" // the list of resources or of templates
	PromptsChanged   NewsKind = "prompts"   // the list of prompts
	ResourceUpdated  NewsKind = "updated"   // the contents of a resource with a subscription
)
