// SPDX-License-Identifier: Apache-2.0

// Package forked tells forks that have not begun from conversations that have.
package forked

import "github.com/consort-go/consort/converse/history"

// Imported begins the ID of the parent of a conversation that was imported as a fork. The parent is deleted.
const Imported = "import-"

// IsUntouched reports whether a conversation is a fork that has no canister of its own yet. If it
// ends in the middle of a turn, an engine must not continue it by itself: no message or answer has
// asked for the rest of this turn. A request to resume it leaves no canister; if its process ends
// before the first one, the fork rests again.
func IsUntouched(info history.Info) bool {
	return info.Parent != "" && info.Length <= info.ParentLength
}
