// SPDX-License-Identifier: Apache-2.0

// Package tokenestimate estimates the tokens of a text.
package tokenestimate

import "github.com/consort-go/consort/internal/jsontext"

// BytesPerToken is for estimates that are rather too high than too low: a token has four
// bytes in English prose, and fewer in code, JSON and most other languages.
const BytesPerToken = 3

// InText estimates the tokens of a text with this many bytes.
func InText(bytes int) int64 { return int64(bytes+BytesPerToken-1) / BytesPerToken }

// InTool estimates the tokens of a tool's definition, which each request contains.
func InTool(name, description string, schema []byte) int64 {
	return InText(len(name) + len(description) + len(jsontext.Compact(schema)))
}
