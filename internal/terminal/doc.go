// SPDX-License-Identifier: Apache-2.0

// Package terminal is how the command reads from a person and writes for one: a screen
// with lines about current activity, a line editor, the questions of models and servers,
// and renderers for conversations, tables and traces. It knows nothing of commands and of
// configurations.
//
// All output goes through a [Screen]: results to standard output, and notes, which are
// for people, to standard error. A [Renderer] shows the events of a turn: a [View] for
// people and [JSONLines] for programs. A [User] types messages and answers questions.
package terminal
