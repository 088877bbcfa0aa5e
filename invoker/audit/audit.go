// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
)

// Record is what is kept of one invocation. Its JSON form is documented in
// docs/audit.md.
type Record struct {
	// Time is when the invocation was asked for.
	Time time.Time
	// Asker is who asked for it: "model", "mcp" for an MCP client, "grpc" for
	// one of the tool service over gRPC, or "program".
	Asker string
	// Client is what an MCP client calls itself, with its version; may be
	// empty. Nobody verified it.
	Client string
	// ClientName is what the server calls the client: the name of the bearer
	// token that it was known by. Empty without one.
	ClientName string
	// Conversation and Invocation are identities; either may be empty.
	Conversation, Invocation string
	// Ensemble and Tool say whose tool it is, under its own name. For a tool
	// that there is not, Ensemble is empty and Tool is what the asker wrote.
	Ensemble, Tool string
	// Identity holds the trusted values that the policy names, by name, as JSON.
	Identity map[string]json.RawMessage
	// Forged are the names of the trusted values that the asker sent as
	// arguments; see [invoker.Forged].
	Forged []string
	// Arguments is what the asker wrote, any text. What a [Trail] hands on is
	// JSON, unless the asker wrote nothing; see [Options].
	Arguments json.RawMessage
	// Approved is what the tool was called with in place of Arguments, when an
	// approval changed them; otherwise it is empty.
	Approved json.RawMessage
	// By is who decided about the call, or said what came of it, in a
	// conversation that waited for that; otherwise it is empty.
	By string
	// Code is "OK", or the code of the failure.
	Code string
	// Error is what is known of the failure, its causes included; models and
	// clients were not told all of it.
	Error string
	// Duration is how long the tool ran; 0 if it did not.
	Duration time.Duration
	// Bytes is the size of the text and data in the result's content.
	Bytes int
}

// OK is the Code of an invocation that succeeded.
const OK = "OK"

// Ended fills in what came of the invocation, Code, Error, Forged and Bytes:
// from the content that the asker was given, of a success or of a failure, and
// from the error of the call, nil if it succeeded.
func (r *Record) Ended(content []canister.Content, err error) {
	r.Code, r.Bytes = OK, 0
	for _, c := range content {
		r.Bytes += size(c)
	}
	failure := invoker.AsFailure(err)
	if failure == nil {
		return
	}
	r.Code, r.Error = string(failure.Code), told(failure)
	var forged *invoker.Forged
	if errors.As(failure, &forged) && forged != nil {
		r.Forged = forged.Names
	}
}

// told is everything that the chain of a failure says, each thing once.
func told(failure *invoker.Failure) string {
	text := failure.Message
	if text == "" {
		text = canister.TextOf(failure.Content)
	}
	for err := failure.Cause; err != nil; err = errors.Unwrap(err) {
		if more := contain.Text(err); more != "" && !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	return text
}

// size returns the bytes of text and data that a content holds.
func size(content canister.Content) int {
	switch c := content.(type) {
	case canister.TextContent:
		return len(c.Text)
	case canister.ImageContent:
		return len(c.Data) + len(c.URL)
	case canister.AudioContent:
		return len(c.Data)
	case canister.ResourceContent:
		return len(c.Text) + len(c.Blob) + len(c.URI)
	case canister.LinkContent:
		return len(c.URI) + len(c.Name) + len(c.Title) + len(c.Description)
	case canister.StructuredContent:
		return len(c.JSON)
	}
	return 0
}

// Sink is where records go. It may be called concurrently. Each invocation waits
// for it, whatever its context says: a sink that can hang, such as one over a
// network, has to give up by itself.
type Sink interface {
	// Record takes a record, which it does not change. When it returns
	// without an error, the record is kept.
	Record(ctx context.Context, record *Record) error
}
