// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"

	"github.com/consort-go/consort/internal/jsontext"
)

// JSON returns raw with each of its strings, including the names of members,
// passed through clean. raw must be valid JSON, and so is the result. Strings
// that clean does not change are kept byte for byte; raw itself is not changed.
// If clean finds a secret that extends beyond one string, the result is a single
// string with the whole text.
func JSON(raw json.RawMessage, clean func(text string) string) json.RawMessage {
	var out []byte // output for raw[:copied]; nil until a secret is found
	copied := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		begin := i
		i = jsontext.StringEnd(raw, begin)
		if token, found := cleanString(raw[begin:i], clean); found {
			out = append(append(out, raw[copied:begin]...), token...)
			copied = i
		}
		i--
	}
	cleaned := raw
	if copied > 0 {
		cleaned = append(out, raw[copied:]...)
	}
	if whole := clean(string(cleaned)); whole != string(cleaned) {
		return json.RawMessage(quote(whole, false))
	}
	return cleaned
}

// cleanString cleans a JSON string and reports whether that changed it.
func cleanString(token []byte, clean func(text string) string) (string, bool) {
	var text string
	if json.Unmarshal(token, &text) != nil {
		return "", false
	}
	cleaned := clean(text)
	return quote(cleaned, false), cleaned != text
}
