// SPDX-License-Identifier: Apache-2.0

// Package audit keeps one record of every invocation: who asked for which tool
// on whose behalf, with what arguments, and what came of it.
//
// A [Trail] applies the rules of what may be written down and hands each
// record to a [Sink]. Conversations and MCP servers take one in their options.
package audit

import (
	"context"
	"encoding/json"
	"time"
)

// Record is what is kept of one invocation.
type Record struct {
	// Time is when the invocation was asked for.
	Time time.Time
	// Asker is who asked for it: "model", "mcp" for an MCP client, or
	// "program".
	Asker string
	// Client is what an MCP client calls itself, with its version; may be
	// empty. Nobody verified it.
	Client string
	// Conversation and Invocation are identities; either may be empty.
	Conversation, Invocation string
	// Ensemble and Tool say whose tool it is, under its own name. For a tool
	// that there is not, Ensemble is empty and Tool is what the asker wrote.
	Ensemble, Tool string
	// Identity holds the trusted values that the policy names, by name, as JSON.
	Identity map[string]json.RawMessage
	// Forged are the names of the trusted values that the asker sent as
	// arguments; see [invoker.Trusted].
	Forged []string
	// Arguments is what the asker wrote, redacted; JSON unless the asker wrote
	// none.
	Arguments json.RawMessage
	// Code is "OK", or the code of the failure.
	Code string
	// Error is what is known of the failure, its cause included, redacted;
	// models and clients were not told all of it.
	Error string
	// Duration is how long the tool ran; 0 if it did not.
	Duration time.Duration
	// Bytes is the size of the result's content.
	Bytes int
}

// Sink is where records go. It may be called concurrently.
type Sink interface {
	// Record takes a record, which it does not change. When it returns
	// without an error, the record is kept.
	Record(ctx context.Context, record *Record) error
}
