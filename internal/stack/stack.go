// SPDX-License-Identifier: Apache-2.0

// Package stack makes the stack of a new goroutine large enough at once.
package stack

// room is more than a stack of 4 KiB can hold, so that it becomes one of 8 KiB.
const room = 4 << 10

// Grow makes the stack of the calling goroutine at least 8 KiB, which is what a call or
// an exchange needs. Call it first in a new goroutine: the runtime copies a stack when it
// doubles it, which costs most when there are many frames. A stack that is large enough
// already is left as it is.
func Grow() { use(0) }

//go:noinline
func use(i int) byte {
	var space [room]byte
	return space[i&(room-1)]
}
