// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/folding"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
)

// Renderer renders the events of a turn.
type Renderer interface {
	// Show renders one event. An error ends the turn.
	Show(converse.Event) error
	// Done is called after the last event, also after an error.
	Done()
}

// View renders the events of turns for a person: the model's text on standard output, and
// tool calls on standard error.
type View struct {
	screen  *Screen
	Whole   bool                      // tool calls go to standard output too
	waiting *Activity                 // for the model; nil if not waiting
	running map[string]*Activity      // invocations by ID
	made    map[string]*folding.Tally // by programs, by the IDs of their invocations
	thought bool                      // plain lines have said that the model is thinking
	said    bool                      // the current message has text
	spoken  bool                      // an earlier message had text
	before  rune                      // the last character of its text
	answer  *answer                   // the current message, if it is rendered as markdown
	pieces  redact.Stream             // of the current message
}

// NewView returns a view that writes to a screen.
func NewView(s *Screen) *View {
	return &View{screen: s, running: map[string]*Activity{}, made: map[string]*folding.Tally{}}
}

// tell writes a line about tool calls.
func (v *View) tell(line string) {
	if v.Whole {
		v.screen.endLine()
		v.screen.Print(line + "\n")
		return
	}
	v.screen.Note("%s", line)
}

// paint returns the colours for lines about tool calls.
func (v *View) paint() Palette {
	if v.Whole {
		return v.screen.Results
	}
	return v.screen.Notes
}

// Show renders one event.
func (v *View) Show(event converse.Event) error {
	switch e := event.(type) {
	case converse.TurnStarted:
		v.thought = false
		v.wait("waiting for the model") // unavailable servers are logged
	case converse.TextDelta:
		v.text(e.Text)
	case converse.ReasoningDelta:
		v.think()
	case converse.InvocationAnnounced:
		if v.waiting != nil {
			v.waiting.Say("it calls " + display.Line(e.Name))
		}
	case converse.MessageCompleted:
		v.stopWaiting()
		v.endText()
	case converse.InvocationStarted:
		v.stopWaiting()
		v.running[e.Invocation.ID] = v.screen.Begin(rendering.CallText(e.Invocation))
		if v.screen.Plain && e.Invocation.Parent == "" {
			v.tell("calling " + rendering.CallText(e.Invocation))
		}
	case converse.InvocationProgressed:
		if line := v.running[e.Invocation.ID]; line != nil {
			line.Say(rendering.Progress(e.Progress))
		}
		if v.screen.Plain && e.Invocation.Parent == "" {
			v.tell(display.Line(e.Invocation.Name) + ": " + rendering.Progress(e.Progress))
		}
	case converse.InvocationCompleted:
		v.invocationCompleted(e)
	case converse.ExchangeRetried, converse.ExchangeMoved:
		v.tell(v.paint().Faint("  " + rendering.ModelTrouble(e, nil)))
	case converse.TurnCompleted:
		v.Done()
	default: // the other events are not shown
	}
	return v.screen.Err()
}

// wait shows that the turn waits for the model.
func (v *View) wait(what string) {
	if v.waiting == nil && !v.said {
		v.waiting = v.screen.Begin(what)
	}
}

// think shows that the model is reasoning, with the elapsed seconds.
func (v *View) think() {
	if v.screen.Plain && !v.thought {
		v.thought = true
		v.tell("the model is thinking")
	}
	v.wait("the model is thinking")
	if v.waiting != nil {
		v.waiting.rename("the model is thinking")
	}
}

func (v *View) stopWaiting() {
	if v.waiting != nil {
		v.waiting.End()
		v.waiting = nil
	}
}

// text shows text as it streams in, with an empty line between two messages. A person at a
// terminal gets rendered markdown, and all others the text as it is.
func (v *View) text(text string) {
	v.stopWaiting()
	if !v.said && v.spoken {
		v.screen.endLine()
		v.screen.Print("\n")
	}
	v.said, v.spoken = true, true
	v.print(v.pieces.Next(text, v.screen.streamed()))
}

// print shows text of the current message without secrets.
func (v *View) print(text string) {
	if text == "" {
		return
	}
	if v.screen.Live && v.screen.shared {
		if v.answer == nil {
			v.answer = newAnswer(v.screen)
		}
		v.answer.write(text)
		return
	}
	if v.screen.Results.terminal {
		before := v.before
		v.before, _ = utf8.DecodeLastRuneInString(text)
		text = display.Continue(before, text)
	}
	v.screen.Print(text)
}

// endText ends the current message.
func (v *View) endText() {
	v.print(v.pieces.Rest(v.screen.streamed()))
	if v.answer != nil {
		v.answer.end()
		v.answer = nil
	}
	v.screen.endLine()
	v.said = false
}

func (v *View) invocationCompleted(e converse.InvocationCompleted) {
	if line := v.running[e.Invocation.ID]; line != nil {
		line.End()
		delete(v.running, e.Invocation.ID)
	}
	if program := e.Invocation.Parent; program != "" {
		if v.made[program] == nil {
			v.made[program] = &folding.Tally{}
		}
		v.made[program].Add(e.Invocation.Name, e.Result.Failed())
	} else {
		v.tell(v.outcome(e, v.made[e.Invocation.ID]))
		delete(v.made, e.Invocation.ID)
	}
	if len(v.running) == 0 {
		v.wait("waiting for the model")
	}
}

// plainOutcome returns the line about a completed call, and one about the calls of a program.
func plainOutcome(e converse.InvocationCompleted, made *folding.Tally) string {
	state, result := "done in", Fit(resultText(e.Result), maxFailure)
	if e.Result.Failed() {
		state = "failed after"
	} else if found, ok := folding.Found(e.Invocation.Name, e.Result); ok {
		result = Fit(found, maxFailure)
	}
	line := fmt.Sprintf("%s: %s %.1f s: %s", display.Line(e.Invocation.Name), state, e.Duration.Seconds(), result) + CauseText(e.Cause)
	if inner := made.String(); inner != "" {
		line += fmt.Sprintf("\n%s made %s", display.Line(e.Invocation.Name), inner)
	}
	return line
}

// outcome returns the lines about a completed call, and the images of its result if the
// terminal shows them.
func (v *View) outcome(e converse.InvocationCompleted, made *folding.Tally) string {
	if v.screen.Plain {
		return plainOutcome(e, made)
	}
	style := rendering.StyleFor(os.Getenv, v.screen.width())
	style.Color = v.paint().On
	style.ASCII = style.ASCII && v.paint().terminal
	lines := rendering.CompletedCall(style, 0, e, made)
	for _, content := range e.Result.Content {
		picture, isImage := content.(canister.ImageContent)
		if !isImage || !v.screen.shared {
			continue
		}
		if sequence, _ := rendering.Image(style, picture); sequence != "" {
			lines = append(lines, sequence)
		}
	}
	return strings.Join(lines, "\n")
}

// Done removes all lines about current activity, also after an error.
func (v *View) Done() {
	v.stopWaiting()
	for id, line := range v.running {
		line.End()
		delete(v.running, id)
	}
	v.endText()
}
