// SPDX-License-Identifier: Apache-2.0

// Package linediff compares texts line by line.
package linediff

import "strings"

// around is how many unchanged lines are shown before and after a change.
const around = 2

// maxCompared bounds the work of a comparison, in pairs of lines.
const maxCompared = 1 << 20

// Lines returns the lines that differ, with "- " before removed lines, "+ " before added
// lines, and "  " before the unchanged lines around them.
func Lines(before, after string) []string {
	lines := merge(linesOf(before), linesOf(after))
	var shown []string
	gap := false
	for i, line := range lines {
		if !nearChange(lines, i) {
			gap = true
			continue
		}
		if gap && len(shown) > 0 {
			shown = append(shown, "  …")
		}
		gap = false
		shown = append(shown, line)
	}
	return shown
}

// All is like [Lines] and returns all lines, also unchanged ones that are far from changes.
func All(before, after string) []string { return merge(linesOf(before), linesOf(after)) }

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func nearChange(lines []string, i int) bool {
	for _, line := range lines[max(0, i-around):min(len(lines), i+around+1)] {
		if line[0] != ' ' {
			return true
		}
	}
	return false
}

// merge returns all lines of both texts, marked as in [Lines].
func merge(a, b []string) []string {
	var head []string
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, "  "+a[0])
		a, b = a[1:], b[1:]
	}
	same := 0
	for same < min(len(a), len(b)) && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	tail := a[len(a)-same:]
	a, b = a[:len(a)-same], b[:len(b)-same]
	common := commonLines(a, b)
	for len(a)+len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			head = append(head, "  "+a[0])
			a, b = a[1:], b[1:]
		case len(a) > 0 && (len(b) == 0 || common(len(a)-1, len(b)) >= common(len(a), len(b)-1)):
			head = append(head, "- "+a[0])
			a = a[1:]
		default:
			head = append(head, "+ "+b[0])
			b = b[1:]
		}
	}
	for _, line := range tail {
		head = append(head, "  "+line)
	}
	return head
}

// commonLines returns a function that counts how many lines the last i of a and the last
// j of b have in common, in order. If that is too much work, the function returns 0.
func commonLines(a, b []string) func(i, j int) int {
	if len(a)*len(b) > maxCompared {
		return func(int, int) int { return 0 }
	}
	width := len(b) + 1
	counts := make([]int32, (len(a)+1)*width)
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if a[len(a)-i] == b[len(b)-j] {
				counts[i*width+j] = counts[(i-1)*width+j-1] + 1
			} else {
				counts[i*width+j] = max(counts[(i-1)*width+j], counts[i*width+j-1])
			}
		}
	}
	return func(i, j int) int { return int(counts[i*width+j]) }
}
