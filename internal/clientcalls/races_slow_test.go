// SPDX-License-Identifier: Apache-2.0

//go:build race

package clientcalls_test

// races are fewer under the race detector, where each takes ten times as long.
const races = 1_000
