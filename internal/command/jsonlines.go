// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
)

// renderer renders the events of a turn. An error ends the turn.
type renderer interface {
	show(converse.Event) error
	done() // called after the last event, also after an error
}

// jsonLines renders events as lines of JSON.
type jsonLines struct {
	screen       *screen
	conversation string // ID of a stored conversation; empty if it is not stored
}

func (l jsonLines) show(event converse.Event) error {
	form, err := eventjson.Marshal(event)
	if err != nil {
		return err
	}
	if _, is := event.(converse.TurnStarted); is && l.conversation != "" {
		id, err := json.Marshal(l.conversation)
		if err != nil {
			return err
		}
		form = slices.Concat(bytes.TrimSuffix(form, []byte("}")), []byte(`,"conversation":`), id, []byte("}"))
	}
	l.screen.resultJSON(string(form) + "\n")
	return l.screen.failure()
}

func (jsonLines) done() {}
