// SPDX-License-Identifier: Apache-2.0

package httpapi

import "github.com/consort-go/consort/converse/engine"

// gaps detects where deltas of a message were lost. Text after such a gap is not passed on: the
// text that readers have of a message is always its beginning, until they get its canister.
type gaps struct {
	joined int    // the length of the log when the watch had begun: deltas may have come before
	last   Cursor // of the last delta
	isOpen bool   // a delta of the message was lost
}

// deltaUse is what to do with a delta.
type deltaUse int

const (
	passOn     deltaUse = iota // to the readers
	holdBack                   // it is text after a gap
	startAgain                 // pass it on; it makes the deltas before it obsolete
)

// add returns what to do with the next delta.
//
// Index counts the deltas of an attempt, which can write several messages, and a watch skips deltas
// whose message is in the log already. So a missing number means a loss only within one position.
func (g *gaps) add(at Cursor, d engine.Delta) deltaUse {
	isFirst := !g.last.isDelta || at.Position != g.last.Position
	isNewAttempt := !isFirst && at.attempt != g.last.attempt
	isRetry := d.BeginsAgain(0)
	switch {
	case isRetry || at.index == 0:
		g.isOpen = false
	case isFirst:
		g.isOpen = d.Missed > 0 || at.Position <= g.joined
	default:
		g.isOpen = g.isOpen || isNewAttempt || d.Missed > 0 || at.index != g.last.index+1
	}
	g.last = at
	switch {
	case g.isOpen && isWriting(d):
		return holdBack
	case isNewAttempt || isRetry:
		return startAgain
	}
	return passOn
}

// isWriting reports whether a delta belongs to a message that the model is writing.
func isWriting(d engine.Delta) bool {
	kind := d.Kind()
	return kind == "text_delta" || kind == "reasoning_delta" || kind == "invocation_announced"
}
