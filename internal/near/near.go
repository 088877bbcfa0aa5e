// SPDX-License-Identifier: Apache-2.0

// Package near tells how like two names are, for messages that suggest what
// somebody may have meant.
package near

// Distance returns how many bytes must be changed, added, left out or swapped
// with the next to make b of a (the restricted Damerau-Levenshtein distance).
// Its cost grows with the product of the lengths: who compares texts of others
// cuts them first.
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
