// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/shown"
)

// waitList is the JSON output of approve without an answer.
type waitList struct {
	Conversation string     `json:"conversation"`
	Waits        []waitJSON `json:"waits"`
}

// waitJSON is the JSON form of a wait.
type waitJSON struct {
	ID        string          `json:"id"`
	For       string          `json:"for"`
	Deadline  time.Time       `json:"deadline"`
	Who       string          `json:"who,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Question  json.RawMessage `json:"question,omitempty"`
}

// answeredJSON is the JSON output of approve with an answer.
type answeredJSON struct {
	Conversation string `json:"conversation"`
	Wait         string `json:"wait"`
	Verdict      string `json:"verdict"`
	By           string `json:"by"`
}

// waitsOf converts waits to JSON, with the calls in the history that they belong to.
func waitsOf(waits []canister.Wait, canisters []canister.Canister) []waitJSON {
	forms := []waitJSON{}
	for _, wait := range waits {
		form := waitJSON{ID: wait.ID, For: string(wait.For), Deadline: wait.Deadline.UTC(), Who: wait.Who, Question: wait.Question}
		arguments := wait.Arguments
		for _, c := range canisters {
			if invocation, ok := c.(canister.Invocation); ok && invocation.ID == wait.Invocation {
				form.Tool, arguments = invocation.Name, cmp.Or(arguments, invocation.Arguments)
			}
		}
		if json.Valid([]byte(arguments)) {
			form.Arguments = json.RawMessage(arguments)
		}
		forms = append(forms, form)
	}
	return forms
}

// showWaits prints the waits of a conversation.
func (s *shelf) showWaits(info history.Info, waits []canister.Wait, canisters []canister.Canister) error {
	id := info.ID
	forms := waitsOf(waits, canisters)
	switch {
	case s.json:
		return s.screen.PrintDocument(waitList{id, forms})
	case len(forms) == 0:
		text := "Nothing is waited for in the conversation " + word(id) + "."
		if (history.Filter{Open: true}).Allows(info) {
			text += " It is not done. " + s.nextStep(info)
		}
		s.screen.Note("%s", s.screen.Notes.Faint(text))
		return nil
	}
	for i, form := range forms {
		if i > 0 {
			s.screen.Print("\n")
		}
		s.screen.Print(s.waitText(form, waits[i]))
	}
	s.screen.Note("%s", s.screen.Notes.Faint("Answer with: "+s.again("approve "+word(id)+" WAIT")+", and one of "+flagsFor(waits[0].For)))
	return s.screen.Err()
}

// waitText renders a wait for people.
func (s *shelf) waitText(form waitJSON, wait canister.Wait) string {
	paint := s.screen.Results
	head := fmt.Sprintf("%s  %s until %s", paint.Name(shown.Line(form.ID)), shown.Line(form.For), form.Deadline.Local().Format(time.DateTime))
	if form.Who != "" {
		head += ", for " + shown.Line(form.Who) + " to answer"
	}
	lines := []string{head}
	if form.Tool != "" {
		lines = append(lines, "  "+paint.Bold(shown.Line(form.Tool)))
	}
	if question, err := converse.Question(wait); err == nil {
		lines = append(lines, "  asks: "+shown.Line(question.Message))
	}
	if len(form.Arguments) > 0 {
		for line := range strings.Lines(shown.JSON(form.Arguments)) {
			lines = append(lines, "  "+strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
