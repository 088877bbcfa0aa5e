// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/internal/redact"
)

// JSONLines renders the events of a turn as lines of JSON. If the text that streams in
// ends with the possible beginning of a secret, that end comes with a later event.
type JSONLines struct {
	Screen       *Screen
	Conversation string // ID of a stored conversation; empty if it is not stored
	answer       redact.Stream
	reasoning    redact.Stream
}

// Show implements [Renderer].
func (l *JSONLines) Show(event converse.Event) error {
	switch e := event.(type) {
	case converse.TextDelta:
		return l.text(l.answer.Next(e.Text, l.Screen.streamed()))
	case converse.ReasoningDelta:
		return l.thought(l.reasoning.Next(e.Text, l.Screen.streamed()))
	case converse.MessageStarted, converse.MessageCompleted, converse.TurnCompleted:
		if err := l.rest(); err != nil {
			return err
		}
	default: // the other events have no text that continues
	}
	return l.print(event)
}

// Done implements [Renderer].
func (l *JSONLines) Done() { _ = l.rest() } // the turn has failed already if there is a rest

// rest prints the rest of the texts of a message.
func (l *JSONLines) rest() error {
	if err := l.thought(l.reasoning.Rest(l.Screen.streamed())); err != nil {
		return err
	}
	return l.text(l.answer.Rest(l.Screen.streamed()))
}

func (l *JSONLines) text(text string) error {
	if text == "" {
		return nil
	}
	return l.print(converse.TextDelta{Text: text})
}

func (l *JSONLines) thought(text string) error {
	if text == "" {
		return nil
	}
	return l.print(converse.ReasoningDelta{Text: text})
}

// print prints an event.
func (l *JSONLines) print(event converse.Event) error {
	form, err := eventjson.Marshal(event)
	if err != nil {
		return err
	}
	if _, is := event.(converse.TurnStarted); is && l.Conversation != "" {
		id, err := json.Marshal(l.Conversation)
		if err != nil {
			return err
		}
		form = slices.Concat(bytes.TrimSuffix(form, []byte("}")), []byte(`,"conversation":`), id, []byte("}"))
	}
	l.Screen.PrintJSON(string(form) + "\n")
	return l.Screen.Err()
}
