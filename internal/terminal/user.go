// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
)

// User is the person at the terminal: their messages, and their answers to the questions
// of models and servers. Its methods may be called concurrently; one question is asked at
// a time.
type User struct {
	screen    *Screen
	editor    *lineEditor
	later     error
	interrupt func()
}

// NewUser returns the person who types on stdin. A value from interrupts, such as Ctrl-C,
// interrupts the question that is open, which returns [ErrInterrupted]; interrupt is then
// called too, unless the question was for a message.
func NewUser(s *Screen, stdin *os.File, interrupts <-chan os.Signal, interrupt func()) *User {
	return &User{screen: s, editor: newLineEditor(s, stdin, interrupts), interrupt: interrupt}
}

// MayAnswerLater lets the user put approvals off; later is the error of such an approval.
// It must be called before the first question.
func (u *User) MayAnswerLater(later error) { u.later = later }

// Interactive reports whether the user types on a terminal and sees questions there.
func (u *User) Interactive() bool { return u.editor.keyboard != nil && isAnyTerminal(u.screen.Stderr) }

// Message asks for a message, which the line editor remembers. The prompt is shown only
// on a terminal. The error is [ErrInterrupted] after Ctrl-C and io.EOF at the end of the
// input.
func (u *User) Message(ctx context.Context, prompt string) (string, error) {
	return u.editor.read(ctx, prompt, true)
}

// Approve asks the user whether to run a tool call.
func (u *User) Approve(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	paint := u.screen.Notes
	var question strings.Builder
	fmt.Fprintf(&question, "\n%s %s of %s%s\n", paint.Bold("? The model wants to call"),
		paint.Name(display.Line(ask.Tool)), display.Line(ask.Ensemble), paint.Faint(hintText(ask)))
	for line := range strings.Lines(display.JSON(ask.Arguments)) {
		question.WriteString("  " + line)
	}
	choices := "y/N, or a reason for no"
	if u.later != nil {
		choices = "y/N, later, or a reason for no"
	}
	question.WriteString("\n  run it? [" + choices + "] ")
	answer, err := u.editor.question(ctx, question.String())
	if u.later != nil && (errors.Is(err, io.EOF) || err == nil && strings.EqualFold(strings.TrimSpace(answer), "later")) {
		return converse.Decision{}, u.later
	}
	if err != nil {
		return converse.Decision{}, u.unanswered(err)
	}
	switch answer = strings.TrimSpace(answer); strings.ToLower(answer) {
	case "y", "yes":
		return converse.Allow(), nil
	case "", "n", "no":
		return converse.Deny("The person said no."), nil
	}
	return converse.Deny("The person said no: " + answer), nil
}

// hintText describes the hints of a tool's author that matter for an approval.
func hintText(ask converse.Approval) string {
	switch {
	case ask.Definition == nil:
		return ""
	case ask.Definition.Hints.ReadOnly:
		return ", which declares that it changes nothing"
	case ask.Definition.Hints.MayDestroy():
		return ", which may destroy something"
	}
	return ", which changes something"
}

// unanswered wraps the error of a question.
func (u *User) unanswered(err error) error {
	if errors.Is(err, ErrInterrupted) {
		u.interrupt()
	}
	return fmt.Errorf("the user did not answer: %w", err)
}
