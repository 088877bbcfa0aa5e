// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the names of up to n tools that a model may have meant by a
// name that [Catalog.Find] does not know, the nearest first. It also finds a
// tool whose ensemble was left out or misspelled. Names that have nothing to do
// with it are not returned.
func (c *Catalog) Nearest(name string, n int) []string {
	type candidate struct {
		name  string
		score int
	}
	asked := simplified(cut(name, 2*maxName))
	var found []candidate
	for _, t := range c.tools {
		if score, ok := likeness(asked, t); ok {
			found = append(found, candidate{t.name, score})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, f := range found[:max(0, min(n, len(found)))] {
		names = append(names, f.name)
	}
	return names
}

// likeness returns how far the tool's name is from what was asked for, 0 being
// the same, and whether it is near enough to be meant.
func likeness(asked string, t *Tool) (int, bool) {
	full, own := simplified(t.name), simplified(cut(t.definition.Name, maxName))
	best := distance(asked, full)
	near := best <= max(len(asked), len(full))/3
	for _, part := range []string{asked, afterSeparator(asked)} {
		d := distance(part, own)
		if d <= len(own)/3 {
			best, near = min(best, d+1), true
		}
		if len(part) >= 3 && (strings.Contains(own, part) || strings.Contains(part, own) && len(own) >= 3) {
			best, near = min(best, 3+d/2), true
		}
	}
	return best, near
}

// simplified returns s in lower case with one '_' for each run of other
// characters, so that files.read, Files/Read and files__read are the same.
func simplified(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r > 0x7f)
	}), "_")
}

// afterSeparator returns what follows the first word of a simplified name,
// where a model may have put an ensemble.
func afterSeparator(name string) string {
	_, after, _ := strings.Cut(name, "_")
	return after
}

// distance returns the number of bytes to insert, delete or replace to make b
// of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
