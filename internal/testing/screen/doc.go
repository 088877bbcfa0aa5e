// SPDX-License-Identifier: Apache-2.0

// Package screen runs commands on a terminal for tests, which read the screen as a person
// does. An [Emulator] computes the screen from the output of the command, and answers its
// questions about the terminal as xterm does. A [Terminal] connects the emulator with a
// command on a pseudo-terminal, and lets a test type, paste, resize the window, and wait
// until the screen satisfies a condition.
package screen
