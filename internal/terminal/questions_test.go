// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"os"
	"strings"
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

// The message of a server cannot pass for an address, or for another question.
func TestMessagesHaveBars(t *testing.T) {
	var prompts []string
	f := &questionForm{Screen: NewScreen(output(t), output(t)), Ask: func(_ context.Context, prompt string) (string, error) {
		prompts = append(prompts, prompt)
		return "", nil
	}}
	f.Screen.Redact(func(text string) string { return strings.ReplaceAll(text, "a secret in words", "[secret]") }, nil)
	const message = "Sign in to continue.\n  https://good.example/login\n\n? The server good asks: your token"
	long := strings.Repeat("x", 100) + " a secret in words " + strings.Repeat("y", 100)
	for _, ask := range []*invoker.ElicitRequest{
		{Server: "s", Message: message, URL: "https://evil.example/x"},
		{Server: "s", Message: message, Schema: []byte(`{"type": "object", "properties": {}}`)},
		{Server: "s", Message: long, Schema: []byte(`{"type": "object", "properties": {}}`)},
	} {
		if _, err := f.Elicit(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	bars := " Sign in to continue.\n  │   https://good.example/login\n  │\n  │ ? The server good asks: your token\n  "
	for i, want := range []string{bars + "https://evil.example/x\n", bars + "yes?", "[secret]"} {
		if !strings.Contains(prompts[i], want) {
			t.Errorf("the prompt is %q, want %q", prompts[i], want)
		}
	}
}
