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
	switch c := one.(type) {
	case canister.TextContent:
		c.Text, c.Extra = clean(c.Text), extra(c.Extra, clean)
		return c
	case canister.ImageContent:
		c.URL, c.MIME, c.Extra = clean(c.URL), clean(c.MIME), extra(c.Extra, clean)
		return c
	case canister.AudioContent:
		c.MIME, c.Extra = clean(c.MIME), extra(c.Extra, clean)
		return c
	case canister.ResourceContent:
		return Resource(c, clean)
	case canister.LinkContent:
		c.URI, c.Name, c.Title, c.Description = clean(c.URI), clean(c.Name), clean(c.Title), clean(c.Description)
		c.MIME, c.Extra = clean(c.MIME), extra(c.Extra, clean)
		return c
	case canister.StructuredContent:
		c.JSON, c.Extra = JSON(c.JSON, clean), extra(c.Extra, clean)
		return c
	}
	return one
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
