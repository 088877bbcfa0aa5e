// SPDX-License-Identifier: Apache-2.0

// Package models contains only tests, of the three APIs of models together. Conversations
// of every kind run against servers that are as strict as the real ones; conversations
// change their provider on the way; and requests only grow.
package models
