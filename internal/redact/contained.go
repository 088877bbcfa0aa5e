// SPDX-License-Identifier: Apache-2.0

package redact

import "github.com/consort-go/consort/internal/contain"

// Withheld replaces a text that could not be cleaned.
const Withheld = "[withheld: the function Redact panicked]"

// Contained wraps clean, a function of the embedding program, so that it cannot
// panic. If it panics, the text is replaced by [Withheld], because its secrets
// are unknown. Contained returns nil if clean is nil. If panicked is not nil, it
// is called with each panic, possibly concurrently.
func Contained(clean func(text string) string, panicked func(error)) func(text string) string {
	if clean == nil {
		return nil
	}
	return func(text string) (cleaned string) {
		err := contain.Call("the function Redact", func() { cleaned = clean(text) })
		if err == nil {
			return cleaned
		}
		if panicked != nil {
			panicked(err)
		}
		return Withheld
	}
}
