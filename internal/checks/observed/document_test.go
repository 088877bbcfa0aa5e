// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write what comes out into docs/observability/trace.md")

var traceDocument = filepath.Join(observability, "trace.md")

// documented fails if the block of text under a heading of trace.md does not have the
// shape of the output; with -update it writes the output there.
func documented(t *testing.T, heading, came string) {
	t.Helper()
	data, err := os.ReadFile(traceDocument)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	from, to := block(page, heading)
	if from < 0 {
		t.Fatalf("trace.md has no text under the heading %q", heading)
	}
	if *update {
		if err := os.WriteFile(traceDocument, []byte(page[:from]+strings.Trim(came, "\n")+"\n"+page[to:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, got := shape(page[from:to]), shape(came); got != want {
		t.Errorf("what came out is\n%s\nwhich is\n%s\ntrace.md has\n%s", came, got, want)
	}
}

// block finds the first block of text under a heading.
func block(page, heading string) (from, to int) {
	const open, end = "```text\n", "```\n"
	at := strings.Index(page, "\n## "+heading+"\n")
	if at < 0 {
		return -1, -1
	}
	begin := strings.Index(page[at:], open)
	if begin < 0 || strings.Contains(page[at+1:at+begin], "\n## ") {
		return -1, -1
	}
	from = at + begin + len(open)
	return from, from + strings.Index(page[from:], end)
}

// node is a line of a printed trace and the lines indented below it.
type node struct {
	text     string
	children []*node
}

var (
	columns  = regexp.MustCompile(`\s{2,}`)
	branches = regexp.MustCompile(`^[ │├└]*`)
	traceID  = regexp.MustCompile(`^trace [0-9a-f]{32}$`)
	varying  = regexp.MustCompile(`(first after )[\d.]+ \S+?(,|$)|(127\.0\.0\.1:)\d+`)
)

// shape is the part of a printed trace that is the same each time: names, nesting and
// details, but not ids, times and ports, or the order of concurrent spans.
func shape(printed string) string {
	root := &node{}
	path := []*node{root}
	for line := range strings.Lines(strings.Trim(printed, "\n")) {
		line = strings.TrimRight(line, "\n")
		indent := branches.FindString(line)
		if line = line[len(indent):]; line == "" {
			continue
		}
		made := &node{text: lineShape(line)}
		depth := min(utf8.RuneCountInString(indent)/2, len(path)-1)
		path[depth].children = append(path[depth].children, made)
		path = append(path[:depth+1], made)
	}
	return root.render("")
}

func lineShape(line string) string {
	if traceID.MatchString(line) {
		return "trace"
	}
	cells := columns.Split(line, -1)
	if len(cells) > 1 {
		cells = slices.Delete(cells, 1, 2) // how long it took
	}
	return varying.ReplaceAllString(strings.Join(cells, " | "), "$1$3…$2")
}

func (n *node) render(indent string) string {
	var below []string
	for _, child := range n.children {
		below = append(below, child.render(indent+"  "))
	}
	slices.Sort(below)
	if n.text == "" {
		return strings.Join(below, "")
	}
	return strings.TrimPrefix(indent, "  ") + n.text + "\n" + strings.Join(below, "")
}

// The shape must tell traces apart that differ in more than times.
func TestShape(t *testing.T) {
	const printed = "trace 0123456789abcdef0123456789abcdef\n  invoke_agent  17.7 ms  answered\n" +
		"  ├ chat m      1.36 ms  first after 1.30 ms, 127.0.0.1:80\n  └ execute_tool a  1 ms  x\n    └ tools/call a  1 ms\n"
	same := "trace ffffffffffffffffffffffffffffffff\n  invoke_agent  2 s  answered\n  ├ execute_tool a  9 ms  x\n  │ └ tools/call a  8 ms\n" +
		"  └ chat m  8 ms  first after 7 ms, 127.0.0.1:9\n"
	if shape(printed) != shape(same) {
		t.Errorf("not the same:\n%s\n%s", shape(printed), shape(same))
	}
	for _, other := range []string{
		strings.Replace(printed, "chat m", "chat n", 1),
		strings.Replace(printed, "answered", "refusal", 1),
		strings.Replace(printed, "    └ tools", "  └ tools", 1),
		strings.Replace(printed, "  x\n", "  y\n", 1),
		strings.Replace(printed, "    └ tools/call a  1 ms\n", "", 1),
		strings.Replace(printed, "127.0.0.1", "127.0.0.2", 1),
	} {
		if shape(other) == shape(printed) {
			t.Errorf("the same as\n%s", other)
		}
	}
}
