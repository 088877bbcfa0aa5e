// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// redaction is [Options].Redact at work on the things that hold text. The nil
// one leaves everything as it is; none changes what it is given.
type redaction func(text string) string

func (r redaction) contents(contents []canister.Content) []canister.Content {
	if r == nil {
		return contents
	}
	cleaned := make([]canister.Content, len(contents))
	for i, c := range contents {
		cleaned[i] = r.content(c)
	}
	return cleaned
}

func (r redaction) content(content canister.Content) canister.Content {
	switch c := content.(type) {
	case canister.TextContent:
		c.Text, c.Extra = r(c.Text), r.extra(c.Extra)
		return c
	case canister.ImageContent:
		c.URL, c.MIME, c.Extra = r(c.URL), r(c.MIME), r.extra(c.Extra)
		return c
	case canister.AudioContent:
		c.MIME, c.Extra = r(c.MIME), r.extra(c.Extra)
		return c
	case canister.ResourceContent:
		c.URI, c.MIME, c.Text, c.Extra = r(c.URI), r(c.MIME), r(c.Text), r.extra(c.Extra)
		if c.Blob != nil { // text, often enough
			c.Blob = []byte(r(string(c.Blob)))
		}
		return c
	case canister.LinkContent:
		c.URI, c.Name, c.Title, c.Description = r(c.URI), r(c.Name), r(c.Title), r(c.Description)
		c.MIME, c.Extra = r(c.MIME), r.extra(c.Extra)
		return c
	case canister.StructuredContent:
		c.JSON, c.Extra = redact.JSON(c.JSON, r), r.extra(c.Extra)
		return c
	}
	return content
}

func (r redaction) extra(extra canister.Extra) canister.Extra {
	return canister.Extra{Metadata: r.fields(extra.Metadata), Unknown: r.fields(extra.Unknown)}
}

func (r redaction) fields(fields canister.Fields) canister.Fields {
	if r == nil || fields == nil {
		return fields
	}
	cleaned := make(canister.Fields, len(fields))
	for name, value := range fields {
		cleaned[r(name)] = redact.JSON(value, r)
	}
	return cleaned
}

func (r redaction) text(text string) string {
	if r == nil {
		return text
	}
	return r(text)
}

func (r redaction) progress(p invoker.Progress) invoker.Progress {
	p.Message = r.text(p.Message)
	p.Partial = r.contents(byValue(p.Partial))
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

// error keeps a [*ModelError] one, which programs look into.
func (r redaction) error(err error) error {
	if r == nil {
		return err
	}
	if failed, ok := err.(*ModelError); ok && failed != nil {
		cleaned := *failed
		cleaned.Message, cleaned.Code, cleaned.RequestID = r(failed.Message), r(failed.Code), r(failed.RequestID)
		cleaned.Err = redact.Error(failed.Err, r)
		return &cleaned
	}
	return redact.Error(err, r)
}
