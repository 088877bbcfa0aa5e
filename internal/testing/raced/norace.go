// SPDX-License-Identifier: Apache-2.0

//go:build !race

package raced

// Enabled reports whether the race detector is enabled.
const Enabled = false
