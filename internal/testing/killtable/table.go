// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the column into the table of the page")

// The lines before and after the table in its page.
const (
	begin = "<!-- The kill table: go test ./internal/testing/killtable -update writes it. -->\n"
	end   = "<!-- End of the kill table. -->\n"
)

// column is one column of the table: a cell for each row.
type column struct {
	rows  []string
	cells map[string][]string // more than one if exchanges differ
}

func newColumn() *column { return &column{cells: map[string][]string{}} }

func (c *column) add(row, cell string) {
	if !slices.Contains(c.rows, row) {
		c.rows = append(c.rows, row)
	}
	if !slices.Contains(c.cells[row], cell) {
		c.cells[row] = append(c.cells[row], cell)
	}
}

// compare checks that the page contains the column, or writes it with -update.
func (c *column) compare(t *testing.T, page, name string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	old, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table, which are the lines\n%s%s", page, begin, end)
	}
	there := parse(old)
	if !slices.Contains(there.names, name) {
		there.names = append(there.names, name)
	}
	for _, row := range c.rows {
		cell := strings.Join(c.cells[row], " or ")
		if was := there.cells[row][name]; was != cell && !*update {
			t.Errorf("%q, %s: %q, and the table has %q", row, name, cell, was)
		}
		there.set(row, name, cell)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+there.String()+end+tail), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// table is the table in the page.
type table struct {
	names []string // of the columns
	rows  []string
	cells map[string]map[string]string // by row and column
}

func (t *table) set(row, name, cell string) {
	if t.cells[row] == nil {
		t.rows = append(t.rows, row)
		t.cells[row] = map[string]string{}
	}
	t.cells[row][name] = cell
}

func parse(text string) *table {
	t := &table{cells: map[string]map[string]string{}}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Split(strings.Trim(line, "|"), "|")
		for j := range fields {
			fields[j] = strings.TrimSpace(fields[j])
		}
		switch {
		case i == 0:
			t.names = fields[1:]
		case i > 1:
			for j, name := range t.names {
				t.set(fields[0], name, fields[j+1])
			}
		}
	}
	return t
}

func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| killed | %s |\n|---|%s\n", strings.Join(t.names, " | "), strings.Repeat("---|", len(t.names)))
	for _, row := range t.rows {
		b.WriteString("| " + row)
		for _, name := range t.names {
			b.WriteString(" | " + t.cells[row][name])
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
