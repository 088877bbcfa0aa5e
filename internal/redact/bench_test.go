// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

// BenchmarkText is what it costs to look through a large result for five keys.
func BenchmarkText(b *testing.B) {
	clean := redact.New("sk-4f9b0c7de1a2", "ghp_Zx81mQ02LrT5", "postgres://app:pw@db/x", "xoxb-2211-aB9d", "AKIA55EXAMPLE/+K")
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and a key is nowhere. ", 1<<20/68)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		clean(text)
	}
}
