// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/folding"
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
	call *converse.InvocationCompleted  // nil for reasoning
	text string                         // of the reasoning
	made []converse.InvocationCompleted // the calls of a program
}

// size returns about how many bytes a fold has.
func (f fold) size() int {
	if f.call == nil {
		return len(f.text)
	}
	size := sizeOfCall(f.call)
	for _, inner := range f.made {
		size += sizeOfCall(&inner)
	}
	return size
}

func sizeOfCall(e *converse.InvocationCompleted) int {
	return len(e.Invocation.Arguments) + sizeOf(e.Result.Content)
}

// programs are the calls that the programs under way have made, by the IDs of the programs. A
// program can go on in a later turn.
type programs map[string]*program

type program struct {
	tally folding.Tally
	made  []converse.InvocationCompleted // without very large ones
	size  int
}

// maxPrograms bounds how many programs there can be that do not end.
const maxPrograms = 32

// add adds a call of a program.
func (p programs) add(e converse.InvocationCompleted) {
	one := p[e.Invocation.Parent]
	if one == nil {
		if len(p) == maxPrograms {
			clear(p)
		}
		one = &program{}
		p[e.Invocation.Parent] = one
	}
	one.tally.Add(e.Invocation.Name, e.Result.Failed())
	if size := sizeOfCall(&e); one.size+size <= maxFold/2 {
		one.size += size
		one.made = append(one.made, e)
	}
}

// take returns the calls of a program that has ended.
func (p programs) take(invocation string) program {
	one := p[invocation]
	delete(p, invocation)
	if one == nil {
		return program{}
	}
	return *one
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
