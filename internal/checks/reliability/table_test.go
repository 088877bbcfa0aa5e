// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/reliability.md")

// document holds the table between two marks.
const (
	document = "../../../docs/reliability.md"
	begin    = "<!-- the matrix begins -->\n"
	end      = "<!-- the matrix ends -->\n"
)

// TestDocument compares the table of the document with the matrix, and prints
// it. With -update it rewrites the table.
func TestDocument(t *testing.T) {
	table := markdown(cells())
	t.Logf("\n%s", table)
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := bytes.Cut(text, []byte(begin))
	was, tail, closed := bytes.Cut(rest, []byte(end))
	switch {
	case !found || !closed:
		t.Fatalf("%s lacks the marks %q and %q", document, begin, end)
	case string(was) == table:
		return
	case !*update:
		t.Fatalf("the table of %s is not that of the matrix; run this test with -update", document)
	}
	text = fmt.Appendf(nil, "%s%s%s%s%s", head, begin, table, end, tail)
	if err := os.WriteFile(document, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// markdown is the matrix as a table: a row for each fault over each transport,
// a column for each moment.
func markdown(cells []cell) string {
	type row struct {
		fault, via string
	}
	var rows []row
	columns := map[row]map[string]string{}
	for _, c := range cells {
		r := row{string(c.Fault), string(c.Via)}
		if columns[r] == nil {
			rows, columns[r] = append(rows, r), map[string]string{}
		}
		columns[r][column(c)] = c.outcome.String()
	}
	var b strings.Builder
	heads := []string{"connecting", "idle", "in a call, before its effect", "in a call, after its effect", "in parallel calls"}
	fmt.Fprintf(&b, "| fault | over | %s |\n|---|---|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |", r.fault, r.via)
		for _, head := range heads {
			text := columns[r][head]
			if text == "" {
				text = "—"
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// column is the head that a cell stands under.
func column(c cell) string {
	if c.When != inCall {
		return string(c.When)
	}
	return fmt.Sprintf("in a call, %s its effect", strings.TrimSuffix(string(c.At), "-effect"))
}

// String returns the differences of an outcome from a run without a fault.
func (o outcome) String() string {
	parts := []string{strings.ReplaceAll(o.Call, ok, "ok")}
	if o.Call != ok || o.Effects != "1" {
		parts[0] += ", effects " + o.Effects
	}
	if o.Sibling != "" && o.Sibling != ok {
		parts = append(parts, "beside it "+o.Sibling)
	}
	if o.Connection == fresh {
		parts = append(parts, "fresh connection")
	}
	if o.Back == soon {
		parts = append(parts, "again "+soon)
	}
	return strings.Join(parts, "; ")
}
