// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
)

// The bounds of things that can be unfolded: of one, and of all, in bytes.
const (
	maxFold   = 1 << 20
	maxFolded = 4 << 20
)

// folds are the calls and the reasoning that are shown as one line each, oldest first.
type folds struct {
	items []fold
	size  int
	next  int // the one that the next key unfolds; the newest after each new one
}

// fold is a call or reasoning.
type fold struct {
	call *converse.InvocationCompleted // nil for reasoning
	text string                        // of the reasoning
}

// size returns about how many bytes a fold has.
func (f fold) size() int {
	if f.call == nil {
		return len(f.text)
	}
	return len(f.call.Invocation.Arguments) + sizeOf(f.call.Result.Content)
}

// sizeOf returns about how many bytes contents have.
func sizeOf(contents []canister.Content) int {
	size := len(display.Contents(contents))
	for _, content := range contents {
		if image, ok := content.(canister.ImageContent); ok {
			size += len(image.Data)
		}
	}
	return size
}

// add adds something. The oldest things are forgotten when there are too many, and a thing
// that is too large at once: the history of the conversation has it.
func (f *folds) add(one fold) {
	if one.size() > maxFold {
		return
	}
	f.items = append(f.items, one)
	f.size += one.size()
	for f.size > maxFolded {
		f.size -= f.items[0].size()
		f.items = f.items[1:]
	}
	f.next = len(f.items) - 1
}

// unfold returns the newest thing that was not unfolded yet.
func (f *folds) unfold() (fold, bool) {
	if f.next < 0 || f.next >= len(f.items) {
		return fold{}, false
	}
	f.next--
	return f.items[f.next+1], true
}
