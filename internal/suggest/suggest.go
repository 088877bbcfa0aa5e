// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the names that a misspelled name may stand for, for "did you mean" hints.
package suggest

import "strings"

// Distance returns the number of bytes that must be changed, added, removed or
// swapped with the next byte to turn a into b (the restricted Damerau-Levenshtein
// distance). Its cost grows with the product of the lengths: shorten untrusted
// texts first.
func Distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

// Name returns the known name that is most like name, or "" if none is much like it.
func Name(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+len(name)/4+1
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if d := Distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Key returns the key that is most similar to word, or "" if none is similar. At most a
// third of the longer word's letters, rounded, may differ. Differences of spelling that
// users mix up, such as callTimeout and call-timeout, do not count.
func Key(word string, keys []string) string {
	if len(word) > 80 {
		return ""
	}
	best, least := "", 0
	for _, candidate := range keys {
		d := Distance(normal(word), normal(candidate))
		if d > (max(len(word), len(candidate))+1)/3 {
			continue
		}
		if best == "" || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// normal returns a key in lower case, without the characters between its words.
func normal(key string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(key))
}
