// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

// output returns a file, which is not a terminal.
func output(t *testing.T) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// The line of a model says that it thinks, and goes when a tool is at work.
func TestTheModelThinks(t *testing.T) {
	v := NewView(NewScreen(output(t), output(t)))
	defer v.screen.Close()
	for _, e := range []converse.Event{converse.TurnStarted{}, converse.ReasoningDelta{Text: "Hm."}} {
		if err := v.Show(e); err != nil {
			t.Fatal(err)
		}
	}
	if v.waiting == nil || v.waiting.text != "the model is thinking" {
		t.Errorf("the line is %+v", v.waiting)
	}
	if err := v.Show(converse.InvocationStarted{Invocation: canister.Invocation{Head: canister.Head{ID: "i"}, Name: "a"}}); err != nil || v.waiting != nil {
		t.Errorf("while a tool is at work the line is %+v, %v", v.waiting, err)
	}
}
