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

// Elicit puts a server's question to the user (MCP 2025-11-25, client/elicitation).
func (u *User) Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	question := "\n" + u.screen.Notes.Bold("? A server asks: ") + display.Text(ask.Message)
	if ask.URL != "" { // the program does not open the URL itself
		if ask.OnCompletion != nil {
			ask.OnCompletion(func() {
				u.screen.Note("  %s", u.screen.Notes.Faint("The server says that this is done: "+display.Line(ask.Message)))
			})
		}
		return u.consent(ctx, question+"\n  visit "+display.Text(ask.URL)+"\n  did you? [y/N] ")
	}
	fields, err := formFields(ask.Schema)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be shown: %w", err)
	}
	if len(fields) == 0 {
		return u.consent(ctx, question+"\n  yes? [y/N] ")
	}
	content := map[string]any{}
	question += u.screen.Notes.Faint("\n  /no declines; Ctrl-D leaves it unanswered")
	for _, field := range fields {
		value, action, err := u.field(ctx, &field, question)
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
func (u *User) field(ctx context.Context, field *formField, preface string) (any, invoker.Action, error) {
	for range maxTries {
		answer, err := u.editor.question(ctx, preface+"\n  "+field.prompt())
		switch answer = strings.TrimSpace(answer); {
		case errors.Is(err, io.EOF):
			return nil, invoker.Dismiss, nil
		case err != nil:
			return nil, invoker.Dismiss, u.unanswered(err)
		case answer == "/no":
			return nil, invoker.Decline, nil
		}
		value, err := field.parse(answer)
		if err == nil {
			return value, invoker.Accept, nil
		}
		preface = "  " + u.screen.Notes.Bad(display.Text(err.Error()))
	}
	u.screen.Note("%s", preface)
	u.screen.Note("  %s", u.screen.Notes.Faint(fmt.Sprintf("None of %d answers is valid: the server is told that its question was not answered.", maxTries)))
	return nil, invoker.Dismiss, nil
}

// consent asks a yes-or-no question.
func (u *User) consent(ctx context.Context, question string) (*invoker.ElicitResult, error) {
	answer, err := u.editor.question(ctx, question)
	action := invoker.Decline
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case errors.Is(err, io.EOF):
		action = invoker.Dismiss
	case err != nil:
		return nil, u.unanswered(err)
	case answer == "y", answer == "yes":
		action = invoker.Accept
	}
	return &invoker.ElicitResult{Action: action}, nil
}
