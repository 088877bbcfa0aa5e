// SPDX-License-Identifier: Apache-2.0

// Package eventjson writes the events of a conversation as JSON. docs/events.md
// describes the form.
package eventjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/jsontext"
)

// Marshal returns the JSON form of an event: one line, without a newline at its end.
// docs/events.md describes the form. Canisters appear in their own form, under
// "canister", and each at most once in the events of a turn.
//
// The form is for programs that watch, not for storage: store a history as canisters.
// The errors are the errors of [canister.Marshal], and an error for an event that is
// nil.
func Marshal(event converse.Event) ([]byte, error) {
	form, err := formOf(event)
	if err != nil {
		return nil, fmt.Errorf("eventjson: the event %T has no JSON form: %w", event, err)
	}
	line, err := jsontext.Encode(form)
	if err != nil {
		return nil, fmt.Errorf("eventjson: the event %T has no JSON form: %w", event, err)
	}
	return line, nil
}

// eventForm has the members of all events, in the order of the JSON form. Empty members
// are left out.
type eventForm struct {
	Event string `json:"event"`

	Tools   int              `json:"tools,omitzero"`
	Added   []string         `json:"added,omitempty"`
	Removed []string         `json:"removed,omitempty"`
	Aside   []ensemble.Aside `json:"aside,omitempty"`
	Away    []awayForm       `json:"away,omitempty"`

	Text string `json:"text,omitzero"`

	Ended      string  `json:"wait,omitzero"`
	Invocation string  `json:"invocation,omitzero"`
	Parent     string  `json:"parent,omitzero"`
	Name       string  `json:"name,omitzero"`
	Done       float64 `json:"done,omitzero"`
	Total      float64 `json:"total,omitzero"`
	Message    string  `json:"message,omitzero"`

	Partial json.RawMessage `json:"partial,omitempty"`

	Cause string `json:"cause,omitzero"`

	Attempt int     `json:"attempt,omitzero"`
	Wait    float64 `json:"wait_ms,omitzero"`
	Error   string  `json:"error,omitzero"`

	Reason      converse.Reason `json:"reason,omitzero"`
	Answer      string          `json:"answer,omitzero"`
	Exchanges   int             `json:"exchanges,omitzero"`
	Invocations int             `json:"invocations,omitzero"`

	Spent  *spentForm `json:"spent,omitempty"`
	Budget string     `json:"budget,omitzero"`

	Waits []waitForm `json:"waits,omitempty"`

	Finish   canister.Finish `json:"finish,omitzero"`
	Usage    *canister.Usage `json:"usage,omitempty"`
	From     string          `json:"from,omitzero"`
	To       string          `json:"to,omitzero"`
	Trimmed  int             `json:"trimmed,omitzero"`
	Before   int64           `json:"before,omitzero"`
	After    int64           `json:"after,omitzero"`
	Duration float64         `json:"duration_ms,omitzero"`

	Canister json.RawMessage `json:"canister,omitempty"`
}

type awayForm struct {
	Ensemble string `json:"ensemble"`
	Error    string `json:"error"`
}

// waitForm is an open wait of a turn.
type waitForm struct {
	ID         string           `json:"id"`
	For        canister.WaitFor `json:"for"`
	Invocation string           `json:"invocation,omitzero"`
	Who        string           `json:"who,omitzero"`
	Deadline   time.Time        `json:"deadline"`
}

// usageOf returns nil for an empty usage.
func usageOf(usage *canister.Usage) *canister.Usage {
	if usage == nil || *usage == (canister.Usage{}) {
		return nil
	}
	return usage
}

// spentForm is the amount spent of a budget.
type spentForm struct {
	Tokens int64   `json:"tokens,omitzero"`
	Money  string  `json:"money,omitzero"`
	Time   float64 `json:"time_ms,omitzero"`
}

func formOf(event converse.Event) (form eventForm, err error) {
	switch e := event.(type) {
	case converse.TurnStarted:
		form = startedForm(e)
	case converse.ToolsAdded:
		form = eventForm{Event: "tools_added", Tools: e.Tools, Added: e.Added, Aside: e.Aside}
	case converse.MessageStarted:
		form.Event = "message_started"
	case converse.TextDelta:
		form = eventForm{Event: "text_delta", Text: e.Text}
	case converse.ReasoningDelta:
		form = eventForm{Event: "reasoning_delta", Text: e.Text}
	case converse.InvocationAnnounced:
		form = eventForm{Event: "invocation_announced", Name: e.Name}
	case converse.MessageCompleted:
		form.Event = "message_completed"
		form.Canister, err = canister.Marshal(e.Message)
	case converse.InvocationRequested:
		form.Event = "invocation_requested"
		form.Canister, err = canister.Marshal(e.Invocation)
	case converse.InvocationStarted:
		form = invocationForm("invocation_started", e.Invocation)
	case converse.InvocationProgressed:
		form = invocationForm("invocation_progressed", e.Invocation)
		form.Done, form.Total = finite(e.Progress.Done), finite(e.Progress.Total)
		form.Message = e.Progress.Message
		form.Partial, err = contentForm(e.Progress.Partial)
	case converse.InvocationCompleted:
		form = invocationForm("invocation_completed", e.Invocation)
		form.Duration, form.Cause = jsontext.Milliseconds(e.Duration), e.Cause
		form.Canister, err = canister.Marshal(e.Result)
	case converse.WaitStarted:
		form.Event = "wait_started"
		form.Canister, err = canister.Marshal(e.Wait)
	case converse.WaitEnded:
		form = eventForm{Event: "wait_ended", Ended: e.Wait.ID, Invocation: e.Wait.Invocation}
		if e.Answer.ID != "" {
			form.Canister, err = canister.Marshal(e.Answer)
		}
	case converse.ExchangeRetried:
		form = retriedForm(e)
	case converse.ExchangeMoved:
		form = eventForm{Event: "exchange_moved", From: e.From, To: e.To, Error: words(e.Err)}
	case converse.ExchangeCompleted:
		form = eventForm{Event: "exchange_completed", Finish: e.Finish, Duration: jsontext.Milliseconds(e.Duration)}
		form.Usage = usageOf(e.Usage)
	case converse.CompactionCompleted:
		form = eventForm{Event: "compaction_completed", From: e.From, To: e.To, Trimmed: e.Trimmed,
			Before: e.Before, After: e.After, Usage: usageOf(e.Usage), Duration: jsontext.Milliseconds(e.Duration)}
		form.Canister, err = canister.Marshal(e.Document)
	case converse.TurnCompleted:
		form = completedForm(e)
	default:
		err = errors.New("it is not an event of package converse")
	}
	return form, err
}

// contentForm returns contents in the form that they have in a canister; nil for none.
func contentForm(contents []canister.Content) (json.RawMessage, error) {
	line, err := canister.Marshal(canister.Result{Content: contents})
	if err != nil {
		return nil, err
	}
	var form struct{ Content json.RawMessage }
	err = json.Unmarshal(line, &form)
	return form.Content, err
}

func invocationForm(name string, invocation canister.Invocation) eventForm {
	return eventForm{Event: name, Invocation: invocation.ID, Parent: invocation.Parent, Name: invocation.Name}
}

func startedForm(e converse.TurnStarted) eventForm {
	form := eventForm{Event: "turn_started", Tools: e.Tools, Added: e.Added, Removed: e.Removed, Aside: e.Aside}
	for _, away := range e.Away {
		form.Away = append(form.Away, awayForm{Ensemble: away.Ensemble, Error: words(away.Err)})
	}
	return form
}

func retriedForm(e converse.ExchangeRetried) eventForm {
	return eventForm{Event: "exchange_retried", Attempt: e.Attempt, Wait: jsontext.Milliseconds(e.Wait), Error: words(e.Err)}
}

func completedForm(e converse.TurnCompleted) eventForm {
	form := eventForm{
		Event:       "turn_completed",
		Reason:      e.Turn.Reason,
		Answer:      e.Turn.Answer.ID,
		Exchanges:   e.Turn.Exchanges,
		Invocations: e.Turn.Invocations,
		Usage:       usageOf(&e.Turn.Usage),
	}
	for _, w := range e.Turn.Waits {
		form.Waits = append(form.Waits, waitForm{ID: w.ID, For: w.For, Invocation: w.Invocation, Who: w.Who, Deadline: w.Deadline.UTC()})
	}
	if spent := e.Turn.Spent; spent != (budget.Amount{}) {
		form.Spent = &spentForm{Tokens: spent.Tokens, Time: jsontext.Milliseconds(spent.Time)}
		if spent.Money != 0 {
			form.Spent.Money = spent.Money.String()
		}
	}
	if e.Turn.Reached != nil {
		form.Budget = e.Turn.Reached.Error()
	}
	return form
}

// words returns the text of an error, or "" for nil.
func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// finite returns x, or 0 if JSON has no number for it.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
