// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// What was typed or pasted before the keyboard has rested does not answer a question, and
// what was in the input before is there again afterwards.
func TestOnlyKeysAfterTheQuestionAnswerIt(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.keys("half a mess")
	answers := d.asked(&question{render: text(2), choices: choices})
	first := rested{d.question, d.question.press}
	d.keys("y", "enter")
	d.Update(first) // of the time before the keys
	d.keys("y")
	d.paste("y\ny\n")
	if strings.Contains(d.view(), "y once") {
		t.Errorf("the question is open already:\n%s", d.view())
	}
	d.Update(tea.PasteStartMsg{})
	d.rests() // in the middle of a paste
	d.keys("y")
	d.Update(tea.PasteEndMsg{})
	d.rests()
	d.shows("line 1 of the question", "y once", "n no")
	d.paste("z")
	d.rests()
	d.keys("x", "enter")
	d.rests()
	d.keys("y", "enter") // the end of a word
	d.looks()
	d.keys("es, all of it", "enter")
	select {
	case given := <-answers:
		t.Fatalf("it was answered: %+v", given)
	default:
	}
	d.rests()
	d.keys("y", "esc", "n")
	d.shows("→ no")
	d.keys("esc")
	d.answers(answers, "y")
	d.shows("→ once", "half a messyyy y yzxyes, all of it")
	if _, sent := d.sent(); sent {
		t.Error("something was sent")
	}
}

// A question that is longer than the screen is not allowed before its end was shown; it can
// be denied at once.
func TestNobodyAllowsWhatWasNotShown(t *testing.T) {
	for _, height := range []int{12, 24, 40} {
		d := newDesk(t, 40, height)
		answers := d.asked(&question{render: text(100), choices: choices})
		d.rests()
		for range 100 {
			if strings.Contains(d.view(), "line 100 of") {
				break
			}
			d.keys("y", "enter")
			d.keys("pgdown")
			d.looks()
		}
		if len(answers) > 0 {
			t.Fatal("it was allowed before its end was shown")
		}
		d.Update(tea.WindowSizeMsg{Width: 39, Height: height}) // all of it was seen
		d.answers(answers, "y")
		answers = d.asked(&question{render: text(100), choices: choices})
		d.rests()
		d.keys("pgdown")
		d.Update(tea.WindowSizeMsg{Width: 50, Height: height}) // what was seen of it is elsewhere now
		d.confirms("y")
		d.answers(answers, "n")
	}
}

// Keys that arrive together are one look at the screen: rows between them were not drawn.
func TestRowsThatWereNotDrawnDoNotCount(t *testing.T) {
	d := newDesk(t, 40, 14)
	answers := d.asked(&question{render: text(100), choices: choices})
	d.rests()
	d.keys(slices.Repeat([]string{"space"}, 50)...)
	d.confirms("y")
	if len(answers) > 0 || d.question.first > d.question.page {
		t.Errorf("rows from %d on are shown, %d answers", d.question.first, len(answers))
	}
	d.keys("esc", "pgup")
	stale := looked{d.question, d.question.shown - 1}
	seen := d.question.seen
	d.keys("pgdown", "pgdown")
	d.Update(stale)
	if d.question.seen > seen {
		t.Error("rows count as seen that have just come on the screen")
	}
}

// Nothing can be allowed in a window that is too narrow for the rows.
func TestNarrowWindows(t *testing.T) {
	d := newDesk(t, 40, 24)
	answers := d.asked(&question{render: text(1), choices: choices})
	d.rests()
	d.Update(tea.WindowSizeMsg{Width: 15, Height: 24})
	d.looks()
	d.confirms("y")
	if len(answers) > 0 {
		t.Error("it was allowed")
	}
	d.Update(tea.WindowSizeMsg{Width: 40, Height: 24})
	d.looks()
	d.answers(answers, "y")
}

// After another program had the terminal, the keyboard has to rest again.
func TestAQuestionClosesForAnotherProgram(t *testing.T) {
	for _, back := range []tea.Msg{resumed{stopped: true}, edited{text: "draft"}} {
		d := newDesk(t, 80, 24)
		answers := d.asked(&question{render: text(1), choices: choices})
		d.rests()
		d.keys("y")
		d.looks()
		d.Update(back)
		d.keys("enter", "y", "enter")
		if len(answers) > 0 || d.question.open {
			t.Errorf("%T: the question is open", back)
		}
		d.rests()
		d.answers(answers, "y")
	}
}

func TestAReasonForNo(t *testing.T) {
	d := newDesk(t, 80, 24)
	answers := d.asked(&question{render: text(1), choices: choices})
	d.rests()
	d.keys("d")
	d.shows("why not?")
	d.keys("esc")
	d.keys("d", "too heavy", "enter")
	if given := <-answers; given != (reply{key: "d", text: "too heavy"}) {
		t.Errorf("the answer is %+v", given)
	}
	answers = d.asked(&question{render: text(1), choices: choices})
	d.rests()
	d.keys("ctrl+d")
	if given := <-answers; !errors.Is(given.err, io.EOF) {
		t.Errorf("the answer is %+v", given)
	}
	q := &question{render: text(1), choices: choices}
	d.asked(q)
	d.happens(withdrawn{q})
	d.shows("(withdrawn)")
	d.keys("ctrl+c")
	if d.interrupts != 1 {
		t.Errorf("%d interrupts", d.interrupts)
	}
}
