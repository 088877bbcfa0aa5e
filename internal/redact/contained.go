// SPDX-License-Identifier: Apache-2.0

package redact

import "github.com/consort-go/consort/internal/contain"

// Withheld stands for a text that could not be cleaned.
const Withheld = "[withheld: the function Redact panicked]"

// Contained returns clean, the function of an embedding program, so that it
// cannot panic: a text on which it does becomes [Withheld], because what is
// secret in it is not known. It is nil for nil. Panicked, unless it is nil, takes
// each panic; it may be called concurrently.
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
