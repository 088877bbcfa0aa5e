// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/textcut"
)

// maxName is how much of a name is compared, in bytes.
const maxName = 64

// Names returns the full names of up to n items that may be meant by a name, the nearest
// first. The function of returns the full name of an item, <scope>__<own name>, and its
// own name; it also finds items whose scope was left out or misspelled. Names without
// similarity are not returned.
func Names[T any](name string, all []T, n int, of func(T) (full, own string)) []string {
	type candidate struct {
		name        string
		score, full int
	}
	asked := simplified(textcut.Prefix(name, 2*maxName))
	var found []candidate
	for _, one := range all {
		fullName, own := of(one)
		if score, full, ok := likeness(asked, fullName, own); ok {
			found = append(found, candidate{fullName, score, full})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.full, b.full), cmp.Compare(a.name, b.name))
	})
	names := []string{}
	for _, f := range found[:max(0, min(n, len(found)))] {
		names = append(names, f.name)
	}
	return names
}

// likeness compares the asked name with the names of a tool or prompt. It returns a
// score, 0 for equal names, the distance to the full name, and whether the name is near
// enough to be meant. In the score, a missing or wrong ensemble counts little, and a
// partial name counts more.
func likeness(asked, fullName, ownName string) (score, distant int, likely bool) {
	full, own := simplified(fullName), simplified(textcut.Prefix(ownName, maxName))
	distant = Distance(asked, full)
	score, likely = distant, distant <= max(len(asked), len(full))/3
	for _, part := range []string{asked, lastWords(asked, 1+strings.Count(own, "_"))} {
		if d := Distance(part, own); d <= len(own)/3 {
			score, likely = min(score, d+1), true
		}
	}
	if len(asked) >= 3 && strings.Contains(own, asked) || len(own) >= 3 && strings.Contains(asked, own) {
		score, likely = min(score, 3+Distance(asked, own)/2), true
	}
	return score, distant, likely
}

// simplified returns s in lower case with one '_' for each run of other characters, so
// that files.read, Files/Read and files__read are the same.
func simplified(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r > 0x7f)
	}), "_")
}

// lastWords returns the last n words of a simplified name.
func lastWords(name string, n int) string {
	end := len(name)
	for range n {
		end = strings.LastIndexByte(name[:end], '_')
		if end < 0 {
			return name
		}
	}
	return name[end+1:]
}
