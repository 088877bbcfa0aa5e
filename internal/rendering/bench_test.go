// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// long returns the corpus again and again, until it has size bytes.
func long(t testing.TB, size int) string {
	texts := corpus(t)
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for b.Len() < size {
		for _, name := range names {
			b.WriteString(texts[name] + "\n\n```\n```\n\n")
		}
	}
	return b.String()[:size]
}

// hard are texts of one block that does not end.
var hard = map[string]func(size int) string{
	"one line":      func(n int) string { return strings.Repeat("word ", n/5) },
	"one word":      func(n int) string { return strings.Repeat("x", n) },
	"wide word":     func(n int) string { return strings.Repeat("東", n/3) },
	"cyrillic word": func(n int) string { return strings.Repeat("ж", n/2) },
	"marks":         func(n int) string { return strings.Repeat("*a_ ", n/4) },
	"brackets":      func(n int) string { return strings.Repeat("[", n) },
	"backticks":     func(n int) string { return strings.Repeat("`a``b", n/5) },
	"quotes":        func(n int) string { return strings.Repeat(">", n) },
	"items":         func(n int) string { return strings.Repeat("- ", n/2) },
	"list":          func(n int) string { return strings.Repeat("- item\n", n/7) },
	"table":         func(n int) string { return "|a|b|\n|-|-|\n" + strings.Repeat("|c|d|\n", n/6) },
	"code":          func(n int) string { return "```go\n" + strings.Repeat("x := \"a\" // b\n", n/14) },
	"comment":       func(n int) string { return "```c\n/*" + strings.Repeat(" word\n", n/6) },
	"empty lines":   func(n int) string { return "    code" + strings.Repeat("\n", n) },
	"accents":       func(n int) string { return "e" + strings.Repeat("\u0301", n/2) },
	"emoji":         func(n int) string { return strings.Repeat("👩\u200d", n/7) },
	"escapes":       func(n int) string { return strings.Repeat("\x1b[0m", n/4) },
}

// The memory is bounded, and so is the part of the text that is rendered again for each
// piece, whatever the text.
func TestMemoryIsBounded(t *testing.T) {
	const size = 32 << 10
	for name, text := range hard {
		m := NewMarkdown(Style{Width: 80, Color: true})
		rows, longest := 0, 0
		for rest := text(size); rest != ""; {
			n := min(len(rest), 500)
			rows += len(m.Write(rest[:n]))
			rest = rest[n:]
			held := len(m.line) + m.blocks.leaf.size + len(m.blocks.leaf.code.context)
			if held > 4*maxBlock || len(m.blocks.open) > maxDepth || len(m.blocks.leaf.lines) > maxBlock {
				t.Fatalf("%s: it holds %d bytes, %d containers and %d lines", name, held, len(m.blocks.open), len(m.blocks.leaf.lines))
			}
			if len(rest)%5000 < 500 {
				longest = max(longest, len(m.Tail()))
			}
		}
		if rows += len(m.Finish()); rows == 0 || longest > 2*maxBlock {
			t.Errorf("%s has %d rows, and a tail of %d", name, rows, longest)
		}
	}
}

func BenchmarkMarkdown(b *testing.B) {
	unit := 1 << 20
	if testing.Short() {
		unit = 1 << 16
	}
	text := long(b, 10*unit)
	for _, units := range []int{1, 10} {
		b.Run(strings.Repeat("x", units), func(b *testing.B) { benchmark(b, text[:units*unit]) })
	}
	for name, text := range hard {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) { benchmark(b, text(unit)) })
	}
}

// benchmark streams a text in pieces of 64 bytes, and asks for the tail every 100 pieces,
// which is more often than a screen is drawn. It reports the memory that is held at the
// end.
func benchmark(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m := NewMarkdown(Style{Width: 100, Color: true})
		pieces := 0
		var slowest time.Duration
		for rest := text; rest != ""; pieces++ {
			n := min(64, len(rest))
			m.Write(rest[:n])
			rest = rest[n:]
			if pieces%100 == 0 {
				began := time.Now()
				m.Tail()
				slowest = max(slowest, time.Since(began))
			}
		}
		m.Finish()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(memory.HeapInuse)/(1<<20), "MB-heap")
		b.ReportMetric(float64(slowest.Microseconds()), "µs-slowest-tail")
	}
}
