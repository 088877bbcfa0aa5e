// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// nearest returns the candidate that is most like word, or "" if none is like
// it: at most a third of the longer word's letters, rounded, may differ.
func nearest(word string, candidates []string) string {
	if len(word) > maxKeyShown {
		return ""
	}
	best, bestDistance := "", 0
	for _, candidate := range candidates {
		d := distance(normal(word), normal(candidate))
		if d > (max(len(word), len(candidate))+1)/3 {
			continue
		}
		if best == "" || d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// normal makes spellings alike that people mix up: callTimeout, call-timeout.
func normal(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// distance is the Levenshtein distance between a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
