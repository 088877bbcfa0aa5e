// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/shown"
)

// Asker asks a person the questions of models and servers.
type Asker struct {
	Console *LineEditor
	// Later is the error of an approval that the person puts off; nil if it cannot be
	// put off.
	Later error
	// Interrupt is called if the person interrupts a question.
	Interrupt func()
}

// Approve asks the user whether to run a tool call.
func (a *Asker) Approve(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	paint := a.Console.screen.Notes
	var question strings.Builder
	fmt.Fprintf(&question, "\n%s %s of %s%s\n", paint.Bold("? The model wants to call"),
		paint.Name(shown.Line(ask.Tool)), shown.Line(ask.Ensemble), paint.Faint(hintText(ask)))
	for line := range strings.Lines(shown.JSON(ask.Arguments)) {
		question.WriteString("  " + line)
	}
	choices := "y/N, or a reason why not"
	if a.Later != nil {
		choices = "y/N, later, or a reason why not"
	}
	question.WriteString("\n  run it? [" + choices + "] ")
	answer, err := a.Console.question(ctx, question.String())
	if a.Later != nil && (errors.Is(err, io.EOF) || err == nil && strings.EqualFold(strings.TrimSpace(answer), "later")) {
		return converse.Decision{}, a.Later
	}
	if err != nil {
		return converse.Decision{}, a.unanswered(err)
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
		return ", which says that it changes nothing"
	case ask.Definition.Hints.MayDestroy():
		return ", which may destroy something"
	}
	return ", which changes something"
}

// unanswered wraps the error of a question.
func (a *Asker) unanswered(err error) error {
	if errors.Is(err, ErrInterrupted) {
		a.Interrupt()
	}
	return fmt.Errorf("the person was not heard: %w", err)
}
