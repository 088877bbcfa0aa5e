// SPDX-License-Identifier: Apache-2.0

//go:build race

package bench

// raceDetector reports whether the test is built with the race detector.
const raceDetector = true
