// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/invoker"
)

// maxTries is how many wrong answers to a field are accepted before the form is
// abandoned.
const maxTries = 5

// Decline declines a server's question and tells the user, because the command asks no
// questions.
func (s *Screen) Decline(_ context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	s.Note("%s asked: %s\n  The question was declined, because only consort chat puts questions of servers to you.",
		display.Line(ask.Server), Fit(display.Line(ask.Message), maxFailure))
	return &invoker.ElicitResult{Action: invoker.Decline}, nil
}

// Form puts the questions of servers to a person, field by field.
type Form struct {
	Screen *Screen
	// Ask asks for a line of text. The prompt may have several lines. Text that was typed
	// before the prompt was shown must not be an answer.
	Ask func(ctx context.Context, prompt string) (string, error)
	// Interrupt is called when an interrupt ends a question.
	Interrupt func()
}

// Elicit puts a server's question to the user (MCP 2025-11-25, client/elicitation).
func (f *Form) Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	question := "\n" + f.Screen.Notes.Bold("? A server asks: ") + display.Text(ask.Message)
	if ask.URL != "" { // the program does not open the URL itself
		if ask.OnCompletion != nil {
			ask.OnCompletion(func() {
				f.Screen.Note("  %s", f.Screen.Notes.Faint("The server says that this is done: "+display.Line(ask.Message)))
			})
		}
		return f.consent(ctx, question+"\n  visit "+display.Text(ask.URL)+"\n  did you? [y/N] ")
	}
	fields, err := formFields(ask.Schema)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be shown: %w", err)
	}
	if len(fields) == 0 {
		return f.consent(ctx, question+"\n  yes? [y/N] ")
	}
	content := map[string]any{}
	question += f.Screen.Notes.Faint("\n  /no declines; Ctrl-D leaves it unanswered")
	for _, field := range fields {
		value, action, err := f.field(ctx, &field, question)
		if err != nil || action != invoker.Accept {
			return &invoker.ElicitResult{Action: action}, err
		}
		if value != nil {
			content[field.name] = value
		}
		question = ""
	}
	return &invoker.ElicitResult{Action: invoker.Accept, Content: content}, nil
}

// field asks for one field, after the preface, until the answer is valid.
func (f *Form) field(ctx context.Context, field *formField, preface string) (any, invoker.Action, error) {
	for range maxTries {
		answer, err := f.Ask(ctx, preface+"\n  "+field.prompt())
		switch answer = strings.TrimSpace(answer); {
		case errors.Is(err, io.EOF):
			return nil, invoker.Dismiss, nil
		case err != nil:
			return nil, invoker.Dismiss, f.unanswered(err)
		case answer == "/no":
			return nil, invoker.Decline, nil
		}
		value, err := field.parse(answer)
		if err == nil {
			return value, invoker.Accept, nil
		}
		preface = "  " + f.Screen.Notes.Bad(display.Text(err.Error()))
	}
	f.Screen.Note("%s", preface)
	f.Screen.Note("  %s", f.Screen.Notes.Faint(fmt.Sprintf("None of %d answers is valid: the server is told that its question was not answered.", maxTries)))
	return nil, invoker.Dismiss, nil
}

// consent asks a yes-or-no question.
func (f *Form) consent(ctx context.Context, question string) (*invoker.ElicitResult, error) {
	answer, err := f.Ask(ctx, question)
	action := invoker.Decline
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case errors.Is(err, io.EOF):
		action = invoker.Dismiss
	case err != nil:
		return nil, f.unanswered(err)
	case answer == "y", answer == "yes":
		action = invoker.Accept
	}
	return &invoker.ElicitResult{Action: action}, nil
}

// unanswered wraps the error of a question.
func (f *Form) unanswered(err error) error {
	if errors.Is(err, ErrInterrupted) {
		f.Interrupt()
	}
	return fmt.Errorf("the user did not answer: %w", err)
}
