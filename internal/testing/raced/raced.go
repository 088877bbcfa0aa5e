// SPDX-License-Identifier: Apache-2.0

// Package raced reports whether the race detector is enabled: a test then takes five times
// as long and more.
package raced

// Fewer returns n, which says how many rounds or bytes a test in one goroutine has. Under the
// race detector it returns a quarter of n. .ci/run runs these tests without the detector as well.
func Fewer(n int) int {
	if Enabled {
		return max(1, n/4)
	}
	return n
}
