// SPDX-License-Identifier: Apache-2.0

// Package redaction applies the function Redact of a conversation to values that hold
// text.
package redaction

import (
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// Func redacts a text. A nil Func leaves everything as it is. Its methods do not change
// their arguments.
type Func func(text string) string

// Contents returns contents with their texts redacted.
func (f Func) Contents(contents []canister.Content) []canister.Content {
	if f == nil {
		return contents
	}
	return redact.Contents(contents, f)
}

// Fields returns JSON members with their strings redacted.
func (f Func) Fields(fields canister.Fields) canister.Fields {
	if f == nil {
		return fields
	}
	return redact.Fields(fields, f)
}

// Text returns a text redacted.
func (f Func) Text(text string) string {
	if f == nil {
		return text
	}
	return f(text)
}

// JSON returns a JSON text with its strings redacted.
func (f Func) JSON(raw json.RawMessage) string {
	if f == nil {
		return string(raw)
	}
	return string(redact.JSON(raw, f))
}

// Schema returns a JSON Schema with its strings redacted.
func (f Func) Schema(raw json.RawMessage) json.RawMessage {
	if f == nil || raw == nil {
		return raw
	}
	return redact.JSON(raw, f)
}

// Progress returns a progress report with its texts redacted.
func (f Func) Progress(p invoker.Progress) invoker.Progress {
	p.Message = f.Text(p.Message)
	p.Partial = f.Contents(bounds.ByValue(p.Partial))
	return p
}

// Asides returns tools that are set aside with their reasons redacted.
func (f Func) Asides(all []ensemble.Aside) []ensemble.Aside {
	all = slices.Clone(all) // it is shared
	for i := range all {
		all[i].Reason = f.Text(all[i].Reason)
	}
	return all
}

// Error returns an error with its text redacted.
func (f Func) Error(err error) error {
	if f == nil {
		return err
	}
	return redact.Error(err, f)
}
