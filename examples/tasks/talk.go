// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// dialogue is the conversation of one person.
type dialogue struct {
	*converse.Conversation
	model *conversetest.Script
}

// meet begins the conversation of a person. The program sets the identity here; the model
// cannot change it.
func meet(who person, roster *ensemble.Roster, trail *audit.Trail) *dialogue {
	var lines []conversetest.Line
	for _, scene := range script {
		if scene.who == who {
			lines = append(lines, scene.model...)
		}
	}
	model := conversetest.NewScript(lines...)
	return &dialogue{converse.New(model, roster, &converse.Options{
		ID:      who.name + "'s conversation",
		Trusted: []invoker.Value{taskbook.User.Value(who.id)},
		Audit:   trail,
		Limits:  converse.Limits{Parallel: 1}, // makes the audit trail the same every time
	}), model}
}

// converseAll plays the script: two conversations that share one roster.
func converseAll(ctx context.Context, out io.Writer, roster *ensemble.Roster, trail *audit.Trail) error {
	dialogues := map[person]*dialogue{}
	for _, who := range []person{ada, ben} {
		dialogues[who] = meet(who, roster, trail)
		defer dialogues[who].Close(ctx)
	}
	for _, scene := range script {
		talk := dialogues[scene.who]
		before := len(talk.History())
		_, err := talk.Ask(ctx, canister.Text(scene.says))
		fmt.Fprintf(out, "%s: %s\n", scene.who.name, scene.says)
		show(out, talk.History()[before:])
		if err != nil {
			return err
		}
	}
	return errors.Join(dialogues[ada].model.Err(), dialogues[ben].model.Err())
}

// show prints the canisters that a turn added to the history.
func show(out io.Writer, added []canister.Canister) {
	asked := map[string]canister.Invocation{}
	for _, c := range added {
		switch c := c.(type) {
		case canister.Invocation:
			asked[c.ID] = c
		case canister.Result:
			fmt.Fprintf(out, "  %s %s\n", asked[c.Invocation].Name, asked[c.Invocation].Arguments)
			fmt.Fprintf(out, "    %s\n", outcome(c.Code, c.Content))
		case canister.Assistant:
			if len(c.Content) > 0 {
				fmt.Fprintf(out, "model: %s\n\n", textOf(c.Content))
			}
		}
	}
}

// outcome returns the outcome of a call as text.
func outcome(code string, content []canister.Content) string {
	return strings.ReplaceAll(strings.TrimSpace(code+" "+textOf(content)), "\n", "\n    ")
}

// textOf returns the text and the structured content.
func textOf(content []canister.Content) string {
	text := canister.TextOf(content)
	for _, c := range content {
		if structured, ok := c.(canister.StructuredContent); ok {
			text += string(structured.JSON)
		}
	}
	return text
}
