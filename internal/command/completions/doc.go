// SPDX-License-Identifier: Apache-2.0

// Package completions proposes words for what a user types: for the arguments and flags of
// the command in a shell, and for the input of chat.
package completions
