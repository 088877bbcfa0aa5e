// SPDX-License-Identifier: Apache-2.0

package house

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the measures of the packages to testdata/ratchet.txt")

const ratchetFile = "testdata/ratchet.txt"

const ratchetHead = `# The measures of each package that must not grow: internal/checks/house tests it.
# A commit that has a reason to let one grow changes the number:
#
#	go test ./internal/checks/house -run TestRatchet -update
#
# package exported code methods embedded idioms
`

// room is how many lines of code a package may grow by before its number in the file
// has to change.
const room = 50

// TestRatchet compares the packages with the numbers in the file.
func TestRatchet(t *testing.T) {
	all := measure(t)
	if *update {
		writeRatchet(t, all)
	}
	allowed := readRatchet(t)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		m, most := all[folder], allowed[folder]
		if most == nil {
			t.Errorf("%s is not in %s; add it with -update", folder, ratchetFile)
			continue
		}
		for _, number := range []struct {
			what      string
			got, most int
		}{
			{"exported names", m.Exported, most.Exported},
			{"lines of code", m.Code, min(most.Code, maxCode)},
			{"methods of " + m.largest, m.Methods, max(most.Methods, 40)},
			{"embedded pointers to unexported structs", m.Embedded, most.Embedded},
			{"odd idioms in comments", m.Idioms, most.Idioms},
		} {
			if number.got > number.most {
				t.Errorf("%s has %d %s, and may have %d", folder, number.got, number.what, number.most)
			}
		}
	}
	for folder := range allowed {
		if all[folder] == nil {
			t.Errorf("%s is in %s and does not exist; remove it with -update", folder, ratchetFile)
		}
	}
}

func writeRatchet(t *testing.T, all map[string]*measures) {
	t.Helper()
	var b strings.Builder
	b.WriteString(ratchetHead)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		m := all[folder]
		code := (m.Code/room + 1) * room
		fmt.Fprintln(&b, folder, m.Exported, code, m.Methods, m.Embedded, m.Idioms)
	}
	if err := os.WriteFile(ratchetFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readRatchet(t *testing.T) map[string]*measures {
	t.Helper()
	text, err := os.ReadFile(ratchetFile)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*measures)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var folder string
		var m measures
		if _, err := fmt.Sscan(line, &folder, &m.Exported, &m.Code, &m.Methods, &m.Embedded, &m.Idioms); err != nil {
			t.Fatalf("%s: %q: %v", ratchetFile, line, err)
		}
		all[folder] = &m
	}
	return all
}

// maxCode is how many lines of code a package may have.
const maxCode = 4500

// totals are the measures of the whole module.
type totals struct {
	measures
	library, kits int      // exported names
	large         []string // packages with more than maxCode lines of code
}

// total adds up the measures of all packages.
func total(all map[string]*measures) *totals {
	sum := &totals{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		m := all[folder]
		sum.Code, sum.Idioms, sum.words = sum.Code+m.Code, sum.Idioms+m.Idioms, sum.words+m.words
		sum.Embedded, sum.wide = sum.Embedded+m.Embedded, sum.wide+m.wide
		if m.Code > maxCode {
			sum.large = append(sum.large, fmt.Sprintf("%s (%d)", folder, m.Code))
		}
		if m.Methods > sum.Methods {
			sum.Methods, sum.largest = m.Methods, folder+"."+m.largest
		}
		switch {
		case within(folder, "internal", "cmd", "examples") || strings.Contains(folder, "/internal"):
		case strings.HasSuffix(folder, "test") || strings.Contains(folder, "test/"):
			sum.kits += m.Exported
		default:
			sum.library += m.Exported
		}
	}
	return sum
}

// TestTable prints the measures of the whole module; see .ci/house.
func TestTable(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("the table is printed with -v")
	}
	all := measure(t)
	sum := total(all)
	for _, row := range []struct {
		what        string
		got, target any
	}{
		{"odd idioms per 1,000 words of comment", fmt.Sprintf("%.1f", 1000*float64(sum.Idioms)/float64(sum.words)), 4},
		{fmt.Sprintf("packages over %d lines of code", maxCode), strings.Join(sum.large, ", "), "none"},
		{"exported names of the library", sum.library, 560},
		{"exported names of the test kits", sum.kits, 95},
		{"exported names of converse", all["converse"].Exported, 65},
		{"exported names of config", all["config"].Exported, 55},
		{"exported names of ensemble", all["ensemble"].Exported, 75},
		{"exported names of canister", all["canister"].Exported, 75},
		{"methods of the largest type", fmt.Sprintf("%d (%s)", sum.Methods, sum.largest), 40},
		{"embedded pointers to unexported structs", sum.Embedded, 0},
		{"direct requirements in go.mod", direct(t), 60},
		{fmt.Sprintf("lines of tests over %d columns", maxColumns), sum.wide, 100},
		{"lines of code", sum.Code, 66000},
	} {
		t.Logf("%-42s %-8v target %v", row.what, row.got, row.target)
	}
}

// direct counts the modules that go.mod requires by itself.
func direct(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	inBlock := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inBlock = true
		case line == ")":
			inBlock = false
		case inBlock && line != "" && !strings.Contains(line, "// indirect"):
			n++
		}
	}
	return n
}
