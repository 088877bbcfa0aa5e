// SPDX-License-Identifier: Apache-2.0

//go:build race

package command

// raced reports whether the race detector is enabled.
const raced = true
