// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"os"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/invoker"
)

// TestOneInterrupt: an interrupt that has cancelled the turn of a question is not counted
// again when the question ends; one that the question receives is.
func TestOneInterrupt(t *testing.T) {
	stdin, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	interrupts, counted := make(chan os.Signal, 1), 0
	user := NewUser(NewScreen(out, out), stdin, interrupts, func() { counted++ })
	ask := func(ctx context.Context) {
		t.Helper()
		question := approvals.Question{Approval: converse.Approval{Invocation: canister.Invocation{Name: "library__erase"}}}
		if _, err := user.AskApproval(ctx, question); err == nil {
			t.Error("the approval has an answer")
		}
	}
	elicit := func(ctx context.Context) {
		t.Helper()
		if _, err := user.Elicit(ctx, &invoker.ElicitRequest{Message: "Really?", Schema: []byte(`{"type": "object", "properties": {}}`)}); err == nil {
			t.Error("the question has an answer")
		}
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	ask(cancelled)
	elicit(cancelled)
	if counted != 0 {
		t.Errorf("the interrupt that cancelled the turn is counted %d times more", counted)
	}
	interrupts <- os.Interrupt
	ask(t.Context())
	interrupts <- os.Interrupt
	elicit(t.Context())
	if counted != 2 {
		t.Errorf("two interrupts at questions are counted %d times", counted)
	}
}
