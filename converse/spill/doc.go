// SPDX-License-Identifier: Apache-2.0

// Package spill stores the pieces of results that are too large for the history of a
// conversation as files in a folder, and removes them with the conversation.
//
//	folder := spill.NewFolder(path)
//	options.Spill = folder.Keep
//	store = folder.Store(store)
package spill
