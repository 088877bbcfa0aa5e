// SPDX-License-Identifier: Apache-2.0

package redact

import "github.com/consort-go/consort/canister"

// Contents returns contents with their texts, URIs, JSON strings, metadata and
// embedded resources passed through clean. The data of images and sounds is not
// searched. The argument is not changed.
func Contents(contents []canister.Content, clean func(text string) string) []canister.Content {
	if contents == nil {
		return nil
	}
	cleaned := make([]canister.Content, len(contents))
	for i, c := range contents {
		cleaned[i] = content(c, clean)
	}
	return cleaned
}

func content(one canister.Content, clean func(text string) string) canister.Content {
	if c, ok := one.(canister.ResourceContent); ok {
		return Resource(c, clean)
	}
	p := canister.PayloadOf(one)
	for _, text := range []*string{&p.Text, &p.MIME, &p.URI, &p.Name, &p.Title, &p.Description} {
		*text = clean(*text)
	}
	p.JSON, p.Extra = JSON(p.JSON, clean), extra(p.Extra, clean)
	return canister.WithPayload(one, p)
}

// Resource is like [Contents] for one resource.
func Resource(c canister.ResourceContent, clean func(text string) string) canister.ResourceContent {
	c.URI, c.MIME, c.Text, c.Extra = clean(c.URI), clean(c.MIME), clean(c.Text), extra(c.Extra, clean)
	if c.Blob != nil { // often text
		c.Blob = []byte(clean(string(c.Blob)))
	}
	return c
}

func extra(e canister.Extra, clean func(text string) string) canister.Extra {
	return canister.Extra{Metadata: Fields(e.Metadata, clean), Unknown: Fields(e.Unknown, clean)}
}

// Fields returns fields with their names and the strings in their values passed
// through clean.
func Fields(fields canister.Fields, clean func(text string) string) canister.Fields {
	if fields == nil {
		return nil
	}
	cleaned := make(canister.Fields, len(fields))
	for name, value := range fields {
		cleaned[clean(name)] = JSON(value, clean)
	}
	return cleaned
}
