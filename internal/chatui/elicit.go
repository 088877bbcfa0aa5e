// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/invoker"
)

// The answers to a server, which the protocol distinguishes: a person declines, or
// dismisses the question without an answer.
var (
	declines  = choice{key: "n", label: "decline"}
	dismisses = choice{key: "x", label: "leave it unanswered"}
)

// The answers before and after a form is filled in.
var (
	unfilled = []choice{{key: "f", label: "fill in the form", fills: true}, declines, dismisses}
	filled   = []choice{{key: "s", label: "send", allows: true}, {key: "e", label: "edit", fills: true}, declines, dismisses}
)

// Elicit puts a server's question to the person (MCP 2025-11-25, client/elicitation).
func (u *UI) Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if ask.URL != "" {
		return u.visit(ctx, ask)
	}
	fields, err := forms.Fields(ask.Schema)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be shown: %w", err)
	}
	q := &question{ask: "answer it?", choices: []choice{{key: "y", label: "yes", allows: true}, declines, dismisses}}
	if len(fields) > 0 {
		q.form, q.choices = newForm(fields, u.redact), unfilled
	}
	paint := u.options.Screen.Results
	q.render = func(style rendering.Style) []string {
		rows := u.request(style, ask, "asks")
		switch {
		case q.form == nil:
		case q.form.complete:
			rows = append(rows, q.form.summary(style, paint)...)
		default:
			rows = append(rows, q.form.overview(style, paint)...)
		}
		return rows
	}
	action, err := reaction(u.ask(ctx, q))
	result := &invoker.ElicitResult{Action: action}
	if action == invoker.Accept && q.form != nil {
		result.Content, err = q.form.content()
	}
	return result, err
}

// visit asks the person to visit a page, and opens it if they want that.
func (u *UI) visit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if ask.OnCompletion != nil {
		ask.OnCompletion(func() {
			u.options.Screen.Note("  %s", u.options.Screen.Notes.Faint("The server says that this is done: "+display.Line(ask.Message)))
		})
	}
	q := &question{ask: "visit it?", choices: []choice{{key: "v", label: "I open it myself", allows: true}, declines, dismisses}}
	if browser.CanOpen(ask.URL) {
		q.choices = slices.Insert(q.choices, 0, choice{key: "o", label: "open it in the browser", allows: true})
	}
	paint := u.options.Screen.Results
	q.render = func(style rendering.Style) []string {
		rows := u.request(style, ask, "asks you to visit a page")
		rows = append(rows, wrapAll("  "+u.redact(display.Line(ask.URL)), style.Width)...)
		if warning := browser.Warning(ask.URL); warning != "" {
			rows = append(rows, wrap("  "+paint.Bad(warning), style.Width)...)
		}
		return rows
	}
	given, err := u.ask(ctx, q)
	if err == nil && given.key == "o" {
		if err := u.options.Open(ctx, ask.URL); err != nil {
			u.options.Screen.Note("  The page could not be opened (%s): please open it yourself.", display.Line(err.Error()))
		}
	}
	action, err := reaction(given, err)
	return &invoker.ElicitResult{Action: action}, err
}

// request returns the rows that say who asks, and for what.
func (u *UI) request(style rendering.Style, ask *invoker.ElicitRequest, verb string) []string {
	rows := rendering.Asked(style, u.redact(ask.Server), verb, u.redact(ask.Message))
	return wrapAll(strings.Join(rows, "\n"), style.Width) // a window may be narrower than a style
}

// reaction returns the meaning of an answer to a server's question.
func reaction(given reply, err error) (invoker.Action, error) {
	switch {
	case errors.Is(err, io.EOF), err == nil && given.key == dismisses.key:
		return invoker.Dismiss, nil
	case err != nil:
		return invoker.Dismiss, fmt.Errorf("the user did not answer: %w", err)
	case given.key == declines.key:
		return invoker.Decline, nil
	}
	return invoker.Accept, nil
}

// redact removes secrets from a text.
func (u *UI) redact(text string) string {
	if u.options.Redact == nil {
		return text
	}
	return u.options.Redact(text)
}
