// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// eventJSON is an event as one line of JSON. Which members each event has is
// documented in docs/command.md.
type eventJSON struct {
	Event string `json:"event"`

	Tools   *int        `json:"tools,omitempty"`
	Added   []string    `json:"added,omitempty"`
	Removed []string    `json:"removed,omitempty"`
	Aside   []asideJSON `json:"aside,omitempty"`
	Away    []awayJSON  `json:"away,omitempty"`

	Text string `json:"text,omitempty"`

	Invocation string   `json:"invocation,omitempty"`
	Name       string   `json:"name,omitempty"`
	Done       *float64 `json:"done,omitempty"`
	Total      float64  `json:"total,omitempty"`
	Message    string   `json:"message,omitempty"`

	Attempt int     `json:"attempt,omitempty"`
	WaitMS  float64 `json:"wait_ms,omitempty"`
	Error   string  `json:"error,omitempty"`

	Reason      string     `json:"reason,omitempty"`
	Finish      string     `json:"finish,omitempty"`
	Exchanges   *int       `json:"exchanges,omitempty"`
	Invocations *int       `json:"invocations,omitempty"`
	Usage       *usageJSON `json:"usage,omitempty"`
	DurationMS  *float64   `json:"duration_ms,omitempty"`

	Canister json.RawMessage `json:"canister,omitempty"`
}

// usageJSON is a [canister.Usage], as it stands in the canister format.
type usageJSON struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached,omitempty"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning,omitempty"`
}

// newEventJSON returns the JSON form of an event.
func newEventJSON(event converse.Event) (*eventJSON, error) {
	switch e := event.(type) {
	case converse.TurnStarted:
		return turnStartedJSON(e), nil
	case converse.MessageStarted:
		return &eventJSON{Event: "message_started"}, nil
	case converse.TextDelta:
		return &eventJSON{Event: "text_delta", Text: e.Text}, nil
	case converse.ReasoningDelta:
		return &eventJSON{Event: "reasoning_delta", Text: e.Text}, nil
	case converse.MessageCompleted:
		return withCanister(&eventJSON{Event: "message_completed"}, e.Message)
	case converse.InvocationRequested:
		return withCanister(&eventJSON{Event: "invocation_requested"}, e.Invocation)
	case converse.InvocationStarted:
		return &eventJSON{Event: "invocation_started", Invocation: e.Invocation.ID, Name: e.Invocation.Name}, nil
	case converse.InvocationProgressed:
		return &eventJSON{
			Event: "invocation_progressed", Invocation: e.Invocation.ID, Name: e.Invocation.Name,
			Done: &e.Progress.Done, Total: e.Progress.Total, Message: e.Progress.Message,
		}, nil
	case converse.InvocationCompleted:
		duration := milliseconds(e.Duration)
		return withCanister(&eventJSON{
			Event: "invocation_completed", Invocation: e.Invocation.ID, Name: e.Invocation.Name, DurationMS: &duration,
		}, e.Result)
	case converse.ExchangeRetried:
		return &eventJSON{Event: "exchange_retried", Attempt: e.Attempt, WaitMS: milliseconds(e.Wait), Error: e.Err.Error()}, nil
	case converse.ExchangeCompleted:
		duration := milliseconds(e.Duration)
		return &eventJSON{Event: "exchange_completed", Finish: string(e.Finish), Usage: newUsageJSON(e.Usage), DurationMS: &duration}, nil
	case converse.TurnCompleted:
		return turnCompletedJSON(e.Turn)
	}
	return nil, fmt.Errorf("the event %T has no JSON form", event)
}

func turnStartedJSON(e converse.TurnStarted) *eventJSON {
	line := &eventJSON{Event: "turn_started", Tools: &e.Tools, Added: e.Added, Removed: e.Removed}
	for _, a := range e.Aside {
		line.Aside = append(line.Aside, asideJSON(a))
	}
	line.Away = newAwayJSON(e.Away)
	return line
}

func newAwayJSON(aways []ensemble.Away) []awayJSON {
	var out []awayJSON
	for _, a := range aways {
		out = append(out, awayJSON{a.Ensemble, a.Err.Error()})
	}
	return out
}

// turnCompletedJSON has the answer as its canister, if there was one.
func turnCompletedJSON(t converse.Turn) (*eventJSON, error) {
	line := &eventJSON{
		Event: "turn_completed", Reason: string(t.Reason),
		Exchanges: &t.Exchanges, Invocations: &t.Invocations, Usage: newUsageJSON(&t.Usage),
	}
	if t.Answer.ID == "" {
		return line, nil
	}
	return withCanister(line, t.Answer)
}

func newUsageJSON(u *canister.Usage) *usageJSON {
	if u == nil {
		return nil
	}
	return (*usageJSON)(u)
}

func withCanister(line *eventJSON, c canister.Canister) (*eventJSON, error) {
	form, err := canister.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("the canister of %s: %w", line.Event, err)
	}
	line.Canister = form
	return line, nil
}
