// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// redaction applies [Options].Redact to values that hold text. A nil redaction leaves
// everything as it is. Only away changes its argument.
type redaction func(text string) string

func (r redaction) contents(contents []canister.Content) []canister.Content {
	if r == nil {
		return contents
	}
	return redact.Contents(contents, r)
}

func (r redaction) fields(fields canister.Fields) canister.Fields {
	if r == nil {
		return fields
	}
	return redact.Fields(fields, r)
}

func (r redaction) text(text string) string {
	if r == nil {
		return text
	}
	return r(text)
}

// json returns a JSON text with its strings redacted.
func (r redaction) json(raw json.RawMessage) string {
	if r == nil {
		return string(raw)
	}
	return string(redact.JSON(raw, r))
}

// schema returns a JSON Schema with its strings redacted.
func (r redaction) schema(raw json.RawMessage) json.RawMessage {
	if r == nil || raw == nil {
		return raw
	}
	return redact.JSON(raw, r)
}

func (r redaction) progress(p invoker.Progress) invoker.Progress {
	p.Message = r.text(p.Message)
	p.Partial = r.contents(bounds.ByValue(p.Partial))
	return p
}

func (r redaction) aside(all []ensemble.Aside) []ensemble.Aside {
	all = slices.Clone(all) // it is shared
	for i := range all {
		all[i].Reason = r.text(all[i].Reason)
	}
	return all
}

func (r redaction) away(all []ensemble.Away) []ensemble.Away {
	for i := range all {
		all[i].Err = r.error(all[i].Err)
	}
	return all
}

// error redacts an error. A [*ModelError] stays one, because programs inspect it.
func (r redaction) error(err error) error {
	if r == nil {
		return err
	}
	if failed, ok := err.(*ModelError); ok && failed != nil {
		cleaned := *failed
		cleaned.Message, cleaned.Code, cleaned.RequestID = r(failed.Message), r(failed.Code), r(failed.RequestID)
		cleaned.Advice = r(failed.Advice)
		cleaned.Err = redact.Error(failed.Err, r)
		return &cleaned
	}
	return redact.Error(err, r)
}
