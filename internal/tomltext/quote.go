// SPDX-License-Identifier: Apache-2.0

// Package tomltext writes parts of TOML documents.
package tomltext

import (
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
)

// Quote returns text as a basic string of TOML, with U+FFFD for each byte that is not UTF-8.
// The string is valid JSON too.
func Quote(text string) string {
	quoted, _ := jsontext.Encode(text)                          // a string has a JSON form
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`) // which JSON does not escape
}
