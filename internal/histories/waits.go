// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/invoker"
)

// WaitList is the JSON output of approve without an answer.
type WaitList struct {
	Conversation string     `json:"conversation"`
	Waits        []WaitJSON `json:"waits"`
}

// WaitJSON is the JSON form of a wait.
type WaitJSON struct {
	ID        string          `json:"id"`
	For       string          `json:"for"`
	Deadline  time.Time       `json:"deadline"`
	Who       string          `json:"who,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Question  json.RawMessage `json:"question,omitempty"`
}

// AllWaits is the JSON output of approve without a conversation.
type AllWaits struct {
	Conversations []WaitList `json:"conversations"`
}

// Answered is the JSON output of approve with an answer.
type Answered struct {
	Conversation string `json:"conversation"`
	Wait         string `json:"wait"`
	Verdict      string `json:"verdict"`
	By           string `json:"by"`
}

// WaitsOf converts waits to JSON, with the calls in the history that they belong to.
func WaitsOf(waits []canister.Wait, canisters []canister.Canister) []WaitJSON {
	forms := []WaitJSON{}
	for _, wait := range waits {
		form := WaitJSON{ID: wait.ID, For: string(wait.For), Deadline: wait.Deadline.UTC(), Who: wait.Who, Question: wait.Question}
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

// ListWaits prints the open waits of all conversations and of the calls of clients. The error is
// about conversations that cannot be read, which do not hide the others.
func (m *Manager) ListWaits(ctx context.Context) error {
	all := AllWaits{Conversations: []WaitList{}}
	var unread error
	for info, err := range m.store.List(ctx, history.Filter{Open: true}) {
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		_, canisters, err := history.Tail(ctx, m.store, info.ID, func(_ int, end []canister.Canister) bool {
			return slices.ContainsFunc(end, func(c canister.Canister) bool { return c.Kind() == canister.KindAssistant })
		})
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		open := waits.Open(info.ID, canisters, time.Now())
		if len(open) == 0 {
			continue
		}
		forms := WaitsOf(open, canisters)
		all.Conversations = append(all.Conversations, WaitList{info.ID, forms})
		if m.to.JSON {
			continue
		}
		m.to.Screen.Print(m.to.Screen.Results.Name(display.Word(info.ID)) + "  " + display.Line(info.Title) + "\n")
		for i, form := range forms {
			m.to.Screen.Print(m.waitText(form, open[i]))
		}
	}
	switch {
	case m.to.JSON:
		return errors.Join(m.to.Screen.PrintDocument(all), unread)
	case len(all.Conversations) == 0:
		m.to.Screen.Hint("Nothing waits for an answer.")
	default:
		m.to.Screen.Hint("Answer with: " + m.at.CommandLine("approve ID WAIT") + ", or with --deny REASON")
	}
	return errors.Join(m.to.Screen.Err(), unread)
}

// showWaits prints the waits of a conversation.
func (m *Manager) showWaits(info history.Info, waits []canister.Wait, canisters []canister.Canister) error {
	id := info.ID
	forms := WaitsOf(waits, canisters)
	switch {
	case m.to.JSON:
		return m.to.Screen.PrintDocument(WaitList{id, forms})
	case len(forms) == 0:
		text := "The conversation " + display.Word(id) + " waits for nothing."
		if (history.Filter{Open: true}).Match(info) {
			text += " Its turn is not finished. " + m.nextStep(info)
		}
		m.to.Screen.Hint(text)
		return nil
	}
	if clientcalls.IsApproval(info) {
		m.to.Screen.Print(display.Line(info.Title) + "\n")
	}
	for i, form := range forms {
		if i > 0 {
			m.to.Screen.Print("\n")
		}
		m.to.Screen.Print(m.waitText(form, waits[i]))
	}
	m.to.Screen.Hint("Answer with: " + m.at.CommandLine("approve "+display.Word(id)+" WAIT") + ", and one of " + flagsFor(waits[0].For))
	return m.to.Screen.Err()
}

// waitText renders a wait for people.
func (m *Manager) waitText(form WaitJSON, wait canister.Wait) string {
	paint := m.to.Screen.Results
	head := fmt.Sprintf("%s  %s until %s", paint.Name(display.Line(form.ID)), display.Line(form.For), form.Deadline.Local().Format(time.DateTime))
	if form.Who != "" {
		head += ", for " + display.Line(form.Who) + " to answer"
	}
	lines := []string{head}
	if form.Tool != "" {
		lines = append(lines, "  "+paint.Bold(display.Line(form.Tool)))
	}
	if question, err := waits.Question(wait); err == nil {
		lines = append(lines, questionLines(question)...)
	}
	if len(form.Arguments) > 0 {
		for line := range strings.Lines(display.JSON(form.Arguments)) {
			lines = append(lines, "  "+strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// questionLines renders a tool's question: who asks, the page that a person is sent to, and
// the fields of a form.
func questionLines(question *invoker.ElicitRequest) []string {
	asks := "  asks: "
	if question.Server != "" {
		asks = "  " + display.Line(question.Server) + " asks: "
	}
	lines := []string{asks + display.Line(question.Message)}
	if question.URL != "" {
		lines = append(lines, "  at: "+display.Line(question.URL))
		if warning := browser.Warning(question.URL); warning != "" {
			lines = append(lines, "  "+warning)
		}
		return lines
	}
	fields, err := forms.Fields(question.Schema)
	if err != nil {
		return append(lines, "  for an answer of the schema "+display.Line(string(question.Schema)))
	}
	for _, field := range fields {
		lines = append(lines, "  "+display.Line(field.Name)+" ("+display.Line(cmp.Or(field.Type, "any"))+"): "+strings.TrimSuffix(field.Prompt(), ": "))
	}
	return lines
}
