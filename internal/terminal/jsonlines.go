// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
)

// JSONLines renders events as lines of JSON.
type JSONLines struct {
	Screen       *Screen
	Conversation string // ID of a stored conversation; empty if it is not stored
}

// Show implements [Renderer].
func (l JSONLines) Show(event converse.Event) error {
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

// Done implements [Renderer].
func (JSONLines) Done() {}
