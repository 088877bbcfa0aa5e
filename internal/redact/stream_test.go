// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"
)

// Whatever the pieces are, the text is the same and has no secret.
func TestStream(t *testing.T) {
	const secret, text = "sk-0123456789abcdef", "The key is sk-0123456789abcdef, and 東京sk-0123456789abcdef is\nanother: sk-0123456789abcdef"
	clean := New(secret)
	for size := 1; size <= len(text); size++ {
		var s Stream
		var got strings.Builder
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			got.WriteString(s.Next(rest[:n], clean))
			rest = rest[n:]
		}
		got.WriteString(s.Rest(clean))
		if got.String() != clean(text) {
			t.Fatalf("in pieces of %d bytes: %q", size, got.String())
		}
	}
	var s Stream
	if got := s.Next("as it", nil) + s.Rest(nil); got != "as it" {
		t.Errorf("without a function: %q", got)
	}
	long := strings.Repeat("x", 3*maxHeld)
	shown := 0
	for i := range long {
		shown += len(s.Next(long[i:i+1], clean))
	}
	if shown < 2*maxHeld {
		t.Errorf("%d of %d bytes of a long word are shown", shown, len(long))
	}
}
