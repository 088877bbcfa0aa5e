// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/invoker"
)

// turn is the turn that is under way, or the last one.
type turn struct {
	running  bool
	started  bool                // the servers are connected
	since    time.Time           // of the current activity
	calls    []*call             // that run
	answer   *rendering.Markdown // the model's text that is not finished; nil without any
	rest     []string            // the rows of answer
	pieces   redact.Stream       // of answer
	said     bool                // the current message has text
	thinking *thought            // nil unless the model is reasoning
	announce string              // the call that the model is writing
}

// call is a call of a tool that runs.
type call struct {
	invocation canister.Invocation
	since      time.Time
	progress   invoker.Progress
}

// thought is reasoning that streams in.
type thought struct {
	since  time.Time
	pieces redact.Stream
	text   strings.Builder // without secrets
}

// maxThought bounds the reasoning that can be unfolded, in bytes.
const maxThought = 64 << 10

// begin begins a turn.
func (t *turn) begin(now time.Time) {
	*t = turn{running: true, since: now}
}

// happened changes the model as an event says.
func (m *model) happened(event converse.Event) {
	t, now := &m.turn, m.now()
	if !t.running {
		t.begin(now)
	}
	switch e := event.(type) {
	case converse.TurnStarted:
		t.started, t.since = true, now
	case converse.TextDelta:
		m.text(e.Text)
	case converse.ReasoningDelta:
		if t.thinking == nil {
			t.thinking = &thought{since: now}
		}
		if t.thinking.text.Len() < maxThought {
			t.thinking.text.WriteString(t.thinking.pieces.Next(e.Text, m.options.RedactPart))
		}
	case converse.InvocationAnnounced:
		m.thought()
		t.announce = "writing a call of " + display.Line(e.Name)
	case converse.MessageCompleted:
		m.messageCompleted()
	case converse.InvocationStarted:
		t.calls = append(t.calls, &call{invocation: cleanCall(e.Invocation, m.options.Redact), since: now})
	case converse.InvocationProgressed:
		for _, c := range t.calls {
			if c.invocation.ID == e.Invocation.ID {
				c.progress = e.Progress
				c.progress.Message = m.clean(e.Progress.Message)
			}
		}
	case converse.InvocationCompleted:
		m.invocationCompleted(e)
	case converse.ExchangeCompleted:
		if e.Usage != nil {
			m.tokens += e.Usage.Total()
		}
	case converse.TurnCompleted:
		m.cost += e.Turn.Spent.Money
		m.messageCompleted()
	default:
		m.noted(event)
	}
}

// noted shows the events that are one line.
func (m *model) noted(event converse.Event) {
	text := rendering.ModelTrouble(event, m.clean)
	if e, ok := event.(converse.CompactionCompleted); ok {
		text = fmt.Sprintf("the conversation was shortened for the model, from about %d to %d tokens", e.Before, e.After)
	}
	if text != "" { // the other events are not shown
		m.say(m.paint.Faint("  " + text))
	}
}

// text shows a piece of the model's answer.
func (m *model) text(text string) {
	m.thought()
	t := &m.turn
	if !t.said {
		m.paper.endLine(m.columns())
		m.paper.space()
		t.said, t.answer = true, rendering.NewMarkdown(m.style)
	}
	m.paper.rows = append(m.paper.rows, t.answer.Write(t.pieces.Next(text, m.options.RedactPart))...)
}

// restOfText shows the rest of the answer that the stream holds back.
func (m *model) restOfText() {
	if t := &m.turn; t.answer != nil {
		m.paper.rows = append(m.paper.rows, t.answer.Write(t.pieces.Rest(m.options.RedactPart))...)
	}
}

// thought ends the reasoning, and leaves a line that can be unfolded.
func (m *model) thought() {
	t := m.turn.thinking
	if t == nil {
		return
	}
	m.turn.thinking = nil
	t.text.WriteString(t.pieces.Rest(m.options.RedactPart))
	m.folds.add(fold{text: t.text.String()})
	m.paper.endLine(m.columns())
	m.paper.rows = append(m.paper.rows, rendering.FoldedReasoning(m.style, 0, m.now().Sub(t.since)))
}

// messageCompleted ends the message of the model.
func (m *model) messageCompleted() {
	m.thought()
	t := &m.turn
	m.restOfText()
	if t.answer != nil {
		m.paper.rows = append(m.paper.rows, t.answer.Finish()...)
	}
	t.answer, t.rest, t.said, t.announce, t.since = nil, nil, false, "", m.now()
}

// invocationCompleted replaces the line of a running call by its outcome.
func (m *model) invocationCompleted(e converse.InvocationCompleted) {
	t := &m.turn
	e.Invocation, e.Cause = cleanCall(e.Invocation, m.options.Redact), m.clean(e.Cause)
	if clean := m.options.Redact; clean != nil {
		e.Result.Content = redact.Contents(e.Result.Content, clean)
	}
	t.calls = slices.DeleteFunc(t.calls, func(c *call) bool { return c.invocation.ID == e.Invocation.ID })
	t.since = m.now()
	if e.Invocation.Parent != "" {
		m.programs.add(e)
		return
	}
	made := m.programs.take(e.Invocation.ID)
	m.folds.add(fold{call: &e, made: made.made})
	m.paper.endLine(m.columns())
	m.paper.rows = append(m.paper.rows, rendering.CompletedCall(m.style, 0, e, &made.tally)...)
	m.illustrate(e.Result.Content)
}

// illustrate shows the images of contents, if the terminal can.
func (m *model) illustrate(contents []canister.Content) {
	first := true
	for _, content := range contents {
		image, ok := content.(canister.ImageContent)
		if !ok {
			continue
		}
		sequence, rows := rendering.Image(m.style, image)
		if sequence == "" {
			continue
		}
		if !first { // the first one belongs to the row that is there
			m.paper.add("    "+m.paint.Faint(display.Line(display.Content(image))), m.columns())
		}
		m.paper.illustrate(sequence, rows)
		first = false
	}
}

// cleanCall removes secrets from the arguments of a call. That must precede all that cuts
// or wraps a text.
func cleanCall(call canister.Invocation, clean func(text string) string) canister.Invocation {
	if clean != nil {
		call.Arguments = string(redact.JSON(json.RawMessage(call.Arguments), clean))
	}
	return call
}

// turnOver ends the turn, whatever became of it.
func (m *model) turnOver() {
	m.messageCompleted()
	m.turn.running = false
	m.turn.calls = nil
}

// activity describes the current activity, unless an answer or calls show it.
func (m *model) activity() (what string, since time.Time) {
	t := &m.turn
	switch {
	case len(m.busy) > 0:
		return display.Line(m.busy[len(m.busy)-1]), m.busySince
	case !t.running, t.thinking == nil && (t.said || len(t.calls) > 0) && t.announce == "":
		return "", time.Time{}
	case t.thinking != nil:
		return "thinking", t.thinking.since
	case t.announce != "":
		return t.announce, t.since
	case !t.started && len(m.status.Starting) > 0:
		return "waiting for servers to start: " + display.Line(strings.Join(m.status.Starting, ", ")), t.since
	}
	return "waiting for the model", t.since
}
