// SPDX-License-Identifier: Apache-2.0

// Package raced is for tests under the race detector. It makes a test take five times as long
// and more.
package raced

// Fewer returns n, which says how many rounds or bytes a test in one goroutine has. Under the
// race detector it returns a quarter of n. .ci/run runs these tests without the detector as well.
func Fewer(n int) int {
	if Enabled {
		return max(1, n/4)
	}
	return n
}
