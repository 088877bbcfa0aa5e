// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/internal/rendering"
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

// questionForm puts the questions of servers to a person, field by field.
type questionForm struct {
	Screen *Screen
	// Ask asks for a line of text. The prompt may have several lines. Text that was typed
	// before the prompt was shown must not be an answer.
	Ask func(ctx context.Context, prompt string) (string, error)
	// Interrupt is called when an interrupt ends a question.
	Interrupt func()
	// Open opens a page in the browser.
	Open func(ctx context.Context, url string) error
}

// Elicit puts a server's question to the user (MCP 2025-11-25, client/elicitation).
func (f *questionForm) Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if ask.URL != "" {
		return f.visit(ctx, ask)
	}
	question := f.request(ask, "asks")
	fields, err := forms.Fields(ask.Schema)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be shown: %w", err)
	}
	if len(fields) == 0 {
		_, result, err := f.consent(ctx, question+"\n  yes? [y/N] ", "y", "yes")
		return result, err
	}
	content := map[string]any{}
	question += f.Screen.Notes.Faint("\n  /no declines; Ctrl-D leaves it unanswered")
	for _, field := range fields {
		value, action, err := f.field(ctx, &field, question)
		if err != nil || action != invoker.Accept {
			return &invoker.ElicitResult{Action: action}, err
		}
		if value != nil {
			content[field.Name] = value
		}
		question = ""
	}
	return &invoker.ElicitResult{Action: invoker.Accept, Content: content}, nil
}

// request returns the lines that say who asks, and for what, after an empty one.
func (f *questionForm) request(ask *invoker.ElicitRequest, verb string) string {
	style := rendering.StyleFor(os.Getenv, f.Screen.width())
	style.Color = f.Screen.Notes.On
	message := f.Screen.redacted(ask.Message) // before lines divide a secret
	return "\n" + strings.Join(rendering.Asked(style, ask.Server, verb, message), "\n")
}

// field asks for one field, after the preface, until the answer is valid.
func (f *questionForm) field(ctx context.Context, field *forms.Field, preface string) (any, invoker.Action, error) {
	for range maxTries {
		answer, err := f.Ask(ctx, preface+"\n  "+field.Prompt())
		switch answer = strings.TrimSpace(answer); {
		case errors.Is(err, io.EOF):
			return nil, invoker.Dismiss, nil
		case err != nil:
			return nil, invoker.Dismiss, f.unanswered(ctx, err)
		case answer == "/no":
			return nil, invoker.Decline, nil
		}
		value, err := field.Parse(answer)
		if err == nil {
			return value, invoker.Accept, nil
		}
		preface = "  " + f.Screen.Notes.Bad(display.Line(err.Error()))
	}
	f.Screen.Note("%s", preface)
	f.Screen.Note("  %s", f.Screen.Notes.Faint(fmt.Sprintf("None of %d answers is valid: the server is told that its question was not answered.", maxTries)))
	return nil, invoker.Dismiss, nil
}

// visit asks the user to visit a page, and opens it if they want that.
func (f *questionForm) visit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	paint := f.Screen.Notes
	if ask.OnCompletion != nil {
		ask.OnCompletion(func() {
			f.Screen.Note("  %s", paint.Faint("The server says that this is done: "+display.Line(ask.Message)))
		})
	}
	question := f.request(ask, "asks you to visit a page") + "\n  " + display.Line(ask.URL)
	if warning := browser.Warning(ask.URL); warning != "" {
		question += "\n  " + paint.Bad(warning)
	}
	answers, prompt := []string{"v"}, "v: I open it myself, n for no [v/N] "
	if browser.CanOpen(ask.URL) {
		answers, prompt = []string{"o", "v"}, "o opens it in the browser, v: I open it myself, n for no [o/v/N] "
	}
	answer, result, err := f.consent(ctx, question+"\n  "+prompt, answers...)
	if err == nil && answer == "o" && result.Action == invoker.Accept {
		if err := f.Open(ctx, ask.URL); err != nil {
			f.Screen.Note("  The page could not be opened (%s): please open it yourself.", display.Line(err.Error()))
		}
	}
	return result, err
}

// consent asks a question to which only the given answers mean yes.
func (f *questionForm) consent(ctx context.Context, question string, yes ...string) (answer string, _ *invoker.ElicitResult, _ error) {
	answer, err := f.Ask(ctx, question)
	answer = strings.ToLower(strings.TrimSpace(answer))
	action := invoker.Decline
	switch {
	case errors.Is(err, io.EOF):
		action = invoker.Dismiss
	case err != nil:
		return "", nil, f.unanswered(ctx, err)
	case slices.Contains(yes, answer):
		action = invoker.Accept
	}
	return answer, &invoker.ElicitResult{Action: action}, nil
}

// unanswered wraps the error of a question. If the end of ctx ended the question, the
// interrupt has already been handled.
func (f *questionForm) unanswered(ctx context.Context, err error) error {
	if errors.Is(err, ErrInterrupted) && ctx.Err() == nil {
		f.Interrupt()
	}
	return fmt.Errorf("the user did not answer: %w", err)
}
