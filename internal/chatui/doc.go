// SPDX-License-Identifier: Apache-2.0

// Package chatui is the interactive screen of consort chat: an input with several lines,
// answers as they stream in, running tool calls, questions, and a status line.
//
// It draws at the end of the terminal's ordinary output. Finished lines move into the
// terminal's own scrollback; the lines at the bottom, which change, are few. A [UI] is a
// [terminal.Renderer] for the events of turns, and the person who types messages and
// answers questions.
//
// All state is in one model, which one goroutine changes. Output of other goroutines
// reaches it through a backlog of bounded size: a source that is faster than the terminal
// has to wait.
package chatui
