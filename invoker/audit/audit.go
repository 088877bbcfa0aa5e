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

// Record is the audit record of one invocation. Its JSON form is documented in
// docs/audit.md.
type Record struct {
	// Time is the time of the request.
	Time time.Time
	// Asker is the kind of requester: "model", "mcp" for an MCP client, "grpc" for a
	// client of the gRPC tool service, "console" for a person in the console, or "program".
	Asker string
	// Client is the name and version that an MCP client reports for itself; may be
	// empty. It is not verified.
	Client string
	// ClientName is the server's name for the client: the name of the bearer token
	// that identified it. It is empty without a token.
	ClientName string
	// Conversation and Invocation are IDs; either may be empty.
	Conversation, Invocation string
	// Parent is the ID of the invocation whose tool made this one, such as a program;
	// empty if the requester made it.
	Parent string
	// Ensemble and Tool identify the tool, by its own name. If the tool does not
	// exist, Ensemble is empty and Tool is the name in the request.
	Ensemble, Tool string
	// Identity holds the trusted values that the policy selects, by name, as JSON.
	Identity map[string]json.RawMessage
	// Forged are the names of the trusted values that the requester sent as
	// arguments; see [invoker.Forged].
	Forged []string
	// Arguments is any text that the requester wrote. The records that a [Trail]
	// passes to its sink have JSON here, unless the requester wrote nothing; see
	// [Options].
	Arguments json.RawMessage
	// Approved are the arguments that the tool was called with if an approval changed
	// Arguments; otherwise empty.
	Approved json.RawMessage
	// By names the person or program that decided about the call or reported its
	// outcome, in a conversation that waited for this; otherwise empty.
	By string
	// Code is "OK" or the code of the failure.
	Code string
	// Error describes the failure, including its causes. Models and clients do not
	// see all of it.
	Error string
	// Duration is the running time of the tool; 0 if it did not run.
	Duration time.Duration
	// Bytes is the size of the text and data in the result's content.
	Bytes int
}

// OK is the Code of an invocation that succeeded.
const OK = "OK"

// Ended sets the outcome of the invocation: Code, Error, Forged and Bytes.
// content is the content that the requester received, for a success or a failure,
// and err is the error of the call, or nil if it succeeded.
func (r *Record) Ended(content []canister.Content, err error) {
	r.Code, r.Bytes = OK, 0
	for _, c := range content {
		r.Bytes += canister.PayloadOf(c).Size()
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

// told returns the texts of all errors in the chain of a failure, without
// duplicates.
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

// Sink receives records. It may be called concurrently. Each invocation waits for
// it, regardless of its context: a sink that can hang, such as one over a
// network, needs its own timeout.
type Sink interface {
	// Record stores a record, which it must not change. If it returns nil, the record
	// is stored.
	Record(ctx context.Context, record *Record) error
}
