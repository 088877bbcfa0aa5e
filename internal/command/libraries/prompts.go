// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/reports"
)

// Prompt returns the canisters of a prompt.
func (l Library) Prompt(ctx context.Context, name string, arguments map[string]string) ([]canister.Canister, error) {
	getting := l.Screen.Begin("getting " + display.Line(name))
	messages, err := l.Roster.GetPrompt(ctx, name, arguments)
	getting.End()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, failed(err)
	}
	return messages.Canisters(), nil
}

// ShowPrompt prints a prompt.
func (l Library) ShowPrompt(ctx context.Context, name string, arguments map[string]string) error {
	canisters, err := l.Prompt(ctx, name, arguments)
	if err != nil {
		return err
	}
	if l.JSON {
		return l.Screen.PrintCanisters(canisters...)
	}
	for _, c := range canisters {
		l.Screen.Print(l.Screen.Results.Name(display.Line(string(c.Kind()))) + ": ")
		l.Screen.PrintLine(display.Contents(canister.ContentOf(c)))
	}
	return l.Screen.Err()
}

// ListPrompts prints the prompts of all servers.
func (l Library) ListPrompts(ctx context.Context) error {
	connecting := l.Screen.Begin("connecting")
	all, err := l.Roster.Prompts(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := reports.NewPromptList(all)
	if l.JSON {
		return l.Screen.PrintDocument(list)
	}
	l.Screen.Print(list.Text(l.Screen.Results, l.Roster))
	reports.NoteAway(l.Screen, list.Away)
	return l.Screen.Err()
}
