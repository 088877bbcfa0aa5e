// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"regexp"
	"slices"
	"strings"
)

// block is one fenced block of a page. What a reader does with it stands after its
// language, where a renderer does not show it:
//
//	sh                   commands, which end with status 0; those that end in & keep running
//	sh terminal          the same, in a terminal of their own, until the page ends
//	sh not-run           commands that the test leaves out
//	text                 what the commands right above it print
//	LANGUAGE file=NAME   the content of a file
//	LANGUAGE append=NAME what is added to the end of a file
//	go from=FILE         a part of a file of this module
//	text from=FILE       a part of the output of an example in that file
//
// In printed text a line of … stands for any lines.
type block struct {
	line           int
	language, info string
	text           string
}

var fenced = regexp.MustCompile("(?ms)^```(\\w+)(?: +([^\n]*))?\n(.*?)^```$")

// blocksOf returns the blocks of a page in their order.
func blocksOf(page string) (found []block) {
	for _, at := range fenced.FindAllStringSubmatchIndex(page, -1) {
		part := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return page[at[2*i]:at[2*i+1]]
		}
		found = append(found, block{1 + strings.Count(page[:at[0]], "\n"), part(1), part(2), part(3)})
	}
	return found
}

// varying are the parts of an output that differ from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d{3}\b`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(µs|ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`\b\d{8}-[a-z2-7]{8}\b`), "ID"},
	{regexp.MustCompile(`\b[A-Z2-7]{26}\b`), "ID"},
	{regexp.MustCompile(`\bask-[a-z2-7]{20}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`"duration_ms":[\d.]+`), `"duration_ms":N`},
	{regexp.MustCompile(`\(devel\)|\bv\d+\.\d+\.\d+[-+.\w]*`), "VERSION"},
	{regexp.MustCompile(`\bgo1\.[\w.]+ \w+/\w+`), "GO"},
	{regexp.MustCompile(`up to \d+ tokens`), "up to N tokens"}, // an estimate from the schemas of a server of others
	{regexp.MustCompile(` {2,}`), "  "},                        // the width of a column follows from the others
}

// comparable returns the lines of an output without what varies.
func comparable(text string) (lines []string) {
	for line := range strings.Lines(text) {
		for _, v := range varying {
			line = v.pattern.ReplaceAllString(line, v.name)
		}
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// matches reports whether printed is the text that the page shows.
func matches(shown, printed string) bool {
	want, got := comparable(shown), comparable(printed)
	for first := true; ; first = false {
		n := slices.Index(want, "…")
		if n < 0 {
			return len(got) >= len(want) && slices.Equal(got[len(got)-len(want):], want) && (!first || len(got) == len(want))
		}
		at := indexLines(got, want[:n])
		if at < 0 || first && at > 0 {
			return false
		}
		got, want = got[at+n:], want[n+1:]
	}
}

// indexLines returns where part begins in lines, or -1.
func indexLines(lines, part []string) int {
	for i := range len(lines) - len(part) + 1 {
		if slices.Equal(lines[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
