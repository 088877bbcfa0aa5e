// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/consort-go/consort/mcpadapter"
)

// maxTries is how often a person may answer a field wrongly before the form
// is given up.
const maxTries = 5

// elicit puts a server's question to the person (MCP 2025-11-25,
// client/elicitation).
func (c *chat) elicit(ctx context.Context, ask *mcpadapter.ElicitRequest) (*mcpadapter.ElicitResult, error) {
	if ask.URL != "" {
		return c.elicitVisit(ctx, ask)
	}
	fields, err := formFields(ask.Schema)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be shown: %w", err)
	}
	preface := "\n" + c.screen.notes.bold("? A server asks: ") + printable(ask.Message) +
		c.screen.notes.faint("\n  /no declines; Ctrl-D leaves it unanswered")
	content := map[string]any{}
	for i := 0; i < max(1, len(fields)); i++ {
		prompt := "\n  send an empty answer? [y/N] "
		if len(fields) > 0 {
			prompt = "\n  " + fields[i].prompt()
		}
		value, action, err := c.field(ctx, fields, i, preface, prompt)
		if err != nil || action != mcpadapter.Accept {
			return &mcpadapter.ElicitResult{Action: action}, err
		}
		if value != nil {
			content[fields[i].name] = value
		}
		preface = ""
	}
	return &mcpadapter.ElicitResult{Action: mcpadapter.Accept, Content: content}, nil
}

// field asks for one field until its answer fits. A form without fields asks
// for consent.
func (c *chat) field(ctx context.Context, fields []formField, i int, preface, prompt string) (any, mcpadapter.Action, error) {
	for range maxTries {
		answer, err := c.console.question(ctx, preface, prompt)
		answer = strings.TrimSpace(answer)
		switch {
		case errors.Is(err, io.EOF):
			return nil, mcpadapter.Dismiss, nil
		case err != nil:
			return nil, mcpadapter.Dismiss, c.heard(err)
		case answer == "/no":
			return nil, mcpadapter.Decline, nil
		case len(fields) == 0:
			return nil, consent(answer), nil
		}
		value, err := fields[i].parse(answer)
		if err == nil {
			return value, mcpadapter.Accept, nil
		}
		preface = "  " + c.screen.notes.bad(printable(err.Error()))
	}
	return nil, mcpadapter.Dismiss, nil
}

// elicitVisit asks the person to visit a page, which nothing opens for them.
func (c *chat) elicitVisit(ctx context.Context, ask *mcpadapter.ElicitRequest) (*mcpadapter.ElicitResult, error) {
	preface := "\n" + c.screen.notes.bold("? A server asks you to visit a page: ") + printable(ask.Message) + "\n  " + printable(ask.URL)
	answer, err := c.console.question(ctx, preface, "\n  did you? [y/N] ")
	if errors.Is(err, io.EOF) {
		return &mcpadapter.ElicitResult{Action: mcpadapter.Dismiss}, nil
	}
	if err != nil {
		return nil, c.heard(err)
	}
	return &mcpadapter.ElicitResult{Action: consent(strings.TrimSpace(answer))}, nil
}

// consent is what a yes or no comes to.
func consent(answer string) mcpadapter.Action {
	switch strings.ToLower(answer) {
	case "y", "yes":
		return mcpadapter.Accept
	}
	return mcpadapter.Decline
}
