// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/shown"
)

// view renders the events of turns for a person: the model's text on standard output, and
// tool calls on standard error.
type view struct {
	screen  *screen
	whole   bool                 // tool calls go to standard output too
	waiting *activity            // for the model; nil if not waiting
	running map[string]*activity // invocations by ID
	said    bool                 // the current message has text
	spoken  bool                 // an earlier message had text
	before  rune                 // the last character of its text
}

func newView(s *screen) *view { return &view{screen: s, running: map[string]*activity{}} }

// tell writes a line about tool calls.
func (v *view) tell(line string) {
	if v.whole {
		v.screen.endLine()
		v.screen.result(line + "\n")
		return
	}
	v.screen.note("%s", line)
}

// paint returns the colours for lines about tool calls.
func (v *view) paint() palette {
	if v.whole {
		return v.screen.results
	}
	return v.screen.notes
}

// show renders one event.
func (v *view) show(event converse.Event) error {
	switch e := event.(type) {
	case converse.TurnStarted:
		v.wait("waiting for the model") // unavailable servers are logged
	case converse.TextDelta:
		v.text(e.Text)
	case converse.ReasoningDelta:
		v.think()
	case converse.InvocationAnnounced:
		if v.waiting != nil {
			v.waiting.say("it calls " + shown.Line(e.Name))
		}
	case converse.MessageCompleted:
		v.messageCompleted()
	case converse.InvocationStarted:
		v.stopWaiting()
		v.running[e.Invocation.ID] = v.screen.begin(callText(e.Invocation))
	case converse.InvocationProgressed:
		if line := v.running[e.Invocation.ID]; line != nil {
			line.say(progressText(e.Progress))
		}
	case converse.InvocationCompleted:
		v.invocationCompleted(e)
	case converse.ExchangeRetried:
		v.tell(v.paint().faint(fmt.Sprintf("  the model did not answer, trying again in %s: %s", e.Wait.Round(time.Millisecond), shown.Line(e.Err.Error()))))
	case converse.TurnCompleted:
		v.done()
	}
	return v.screen.failure()
}

// wait shows that the turn waits for the model.
func (v *view) wait(what string) {
	if v.waiting == nil && !v.said {
		v.waiting = v.screen.begin(what)
	}
}

// think shows that the model is reasoning, with the elapsed seconds.
func (v *view) think() {
	v.wait("the model is thinking")
	if v.waiting != nil {
		v.waiting.rename("the model is thinking")
	}
}

func (v *view) stopWaiting() {
	if v.waiting != nil {
		v.waiting.end()
		v.waiting = nil
	}
}

// text shows text as it streams in, with an empty line between two messages.
func (v *view) text(text string) {
	v.stopWaiting()
	if !v.said && v.spoken {
		v.screen.endLine()
		text = "\n" + text
	}
	v.said, v.spoken = true, true
	if v.screen.results.terminal {
		before := v.before
		v.before, _ = utf8.DecodeLastRuneInString(text)
		text = shown.Continue(before, text)
	}
	v.screen.result(text)
}

func (v *view) messageCompleted() {
	v.stopWaiting()
	v.screen.endLine()
	v.said = false
}

func (v *view) invocationCompleted(e converse.InvocationCompleted) {
	if line := v.running[e.Invocation.ID]; line != nil {
		line.end()
		delete(v.running, e.Invocation.ID)
	}
	v.tell(v.outcome(e))
	if len(v.running) == 0 {
		v.wait("waiting for the model")
	}
}

// outcome returns the line about a completed call.
func (v *view) outcome(e converse.InvocationCompleted) string {
	paint, mark := v.paint(), "✓"
	sign := paint.good
	if e.Result.Failed() {
		mark, sign = "✗", paint.bad
	}
	took := fmt.Sprintf("%.2fs", e.Duration.Seconds())
	call := fit(callText(e.Invocation), v.screen.width()*3/5)
	left := max(20, v.screen.width()-columns(call)-columns(took)-8)
	if e.Result.Failed() {
		left = maxFailure
	}
	line := fmt.Sprintf("  %s %s  %s  %s", sign(mark), paint.name(call), paint.faint(took), fit(resultText(e.Result), left))
	return line + causeText(e.Cause)
}

// done removes all lines about current activity, also after an error.
func (v *view) done() {
	v.stopWaiting()
	for id, line := range v.running {
		line.end()
		delete(v.running, id)
	}
	v.screen.endLine()
	v.said = false
}
