// SPDX-License-Identifier: Apache-2.0

// Package rendering turns content into text for a terminal: markdown as it streams in,
// tool calls, results, diffs, questions for approval, and a status line. Its functions
// depend on their arguments alone; they neither read the environment nor write.
//
// A [Style] holds the width, the colours and the other abilities of the terminal. Each
// line that these functions return fits the width, and ends its own colours. All content
// passes through package display first: the only escape sequences in the output are those
// that this package adds.
package rendering
