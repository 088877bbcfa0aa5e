// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// model is all that the screen shows. Only the goroutine of the program changes it.
type model struct {
	options *Options
	backlog *backlog
	lines   chan<- line // messages of the person
	style   rendering.Style
	paint   terminal.Palette
	now     func() time.Time

	width, height int
	ready         bool // the conversation waits for a message
	quitting      bool
	drawn         bool // the screen was drawn once, so that rows can be put above it
	rows          int  // of the view, which gets smaller only with clearScreen
	larger        larger
	writes        *atomic.Int64 // to the terminal; nil in tests without one
	prints        int           // how often rows were printed
	clearing      bool          // clearScreen is on its way
	settling      bool          // a settled is on its way
	ticking       bool
	frame         int // of the spinner

	paper     transcript
	turn      turn
	busy      []string // activities besides the turn
	busySince time.Time
	folds     folds
	programs  programs
	input     *input
	history   *lineHistory
	search    *search
	menu      *menu
	question  *question
	chord     bool   // Ctrl-X was pressed
	hint      string // about the last key
	status    Status
	tokens    int64
	cost      budget.Money
}

// line is a message of the person; the error is io.EOF when they leave.
type line struct {
	text string
	err  error
}

// The items of the backlog, besides events of a turn.
type (
	note      struct{ text string } // output from elsewhere, with line ends
	readiness struct{ ready bool }  // whether a message is waited for
	restored  struct{ text string } // a message that was not sent
	opened    struct{ question *question }
	withdrawn struct{ question *question }
	busy      struct{ what []string } // activities besides the turn
	turnOver  struct{}
	leaving   struct{}
)

// The messages that the model sends itself.
type (
	arrived   struct{} // there are items in the backlog
	batchDue  struct{} // it is time to process more of the backlog
	beat      struct{} // the spinner turns
	firstDraw struct{} // the first view is on the screen
	settled   struct{} // a smaller view is on the screen
)

// The pace of the screen: how often the backlog is processed, how much of it at once, in
// bytes, and how often the spinner turns.
const (
	batchPause = 25 * time.Millisecond
	batchBytes = 48 << 10
	heartbeat  = 100 * time.Millisecond
)

// frameTime is how long it takes at most until a change is drawn (bubbletea draws 60 times
// each second).
const frameTime = 17 * time.Millisecond

// drawTime is how long it takes on a busy machine: bubbletea does not say when it has drawn.
const drawTime = 2 * time.Second

// maxLive bounds the rows of the transcript that are redrawn.
const maxLive = 12

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.backlog.listen, tea.Tick(2*heartbeat, func(time.Time) tea.Msg { return firstDraw{} }))
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmds []tea.Cmd
	if msg == clearScreen {
		m.larger = larger{rows: m.larger.rowsAt(m.now(), m.rows), until: m.now()}
		if m.writes != nil {
			m.larger.erased = m.writes.Load()
		}
		m.rows, m.clearing = 0, false
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case arrived, batchDue:
		cmds = append(cmds, m.process())
	case printed:
		m.paper.gone(msg)
		m.prints++
	case firstDraw:
		m.drawn = true
	case settled:
		m.settling = false
	case beat:
		m.ticking = false
		m.frame++
	case rested:
		if q := m.question; q == msg.question && q.press == msg.press && !q.paste {
			q.open = true
		}
	case looked:
		m.looked(msg)
	case picked:
		if q := m.question; q == msg.question && q.press == msg.press && q.pick != nil {
			q.ready = true
		}
	case resumed:
		if !msg.stopped {
			m.hint = "Ctrl-Z has no effect here: no shell waits for this program."
		}
		cmds = append(cmds, m.question.rest())
	case completed:
		m.complete(msg)
	case edited:
		m.edited(msg)
		cmds = append(cmds, m.question.rest())
	case failure:
		m.say(m.paint.Faint("  " + msg.text))
	case tea.KeyPressMsg, tea.PasteMsg, tea.PasteStartMsg, tea.PasteEndMsg:
		cmds = append(cmds, m.typed(msg))
	}
	cmds = append(cmds, m.settle())
	return m, tea.Batch(cmds...)
}

// clearScreen makes the next view be drawn from its top. A view of fewer rows needs that:
// otherwise the renderer loses the cursor, which can be below its end (ultraviolet
// v0.0.0-20260811, TerminalRenderer.move).
var clearScreen = tea.ClearScreen()

// settle returns the commands that the state of the model calls for.
func (m *model) settle() tea.Cmd {
	if m.height == 0 {
		return nil
	}
	rows, _ := m.visibleRows()
	cmds := []tea.Cmd{m.question.look()}
	switch keep := m.room(); {
	case len(rows) < m.rows && m.paper.printing > 0: // see isShown; printed comes next
	case len(rows) < m.rows && !m.clearing:
		m.clearing = true
		cmds = append(cmds, func() tea.Msg { return clearScreen })
	case !m.drawn || m.clearing:
	case m.paper.waiting(keep) > 0 && m.larger.isShown(m.now(), m.writes):
		if !m.settling {
			m.settling = true
			cmds = append(cmds, tea.Tick(3*frameTime, func(time.Time) tea.Msg { return settled{} }))
		}
	default:
		drawn := m.larger.rowsAt(m.now(), m.rows)
		if m.paper.beginsWithPicture() { // without room it would not be drawn at all
			drawn = m.rows
		}
		cmds = append(cmds, m.paper.print(keep, m.height-drawn-1))
		if m.quitting && m.paper.printing == 0 {
			cmds = append(cmds, tea.Quit)
		}
	}
	if (m.turn.running || len(m.busy) > 0 || len(m.status.Starting) > 0) && !m.ticking && !m.quitting {
		m.ticking = true
		cmds = append(cmds, tea.Tick(heartbeat, func(time.Time) tea.Msg { return beat{} }))
	}
	return tea.Batch(cmds...)
}

// larger is a view with more rows than the present one, which the screen may still have. If more
// rows are printed above it than fit there, bubbletea draws over others.
type larger struct {
	rows  int
	until time.Time // when a smaller view was made
	// erased is how often the terminal had been written to by then.
	erased int64
}

// rowsAt returns how many rows the screen may have at a time; the present view has rows.
func (l larger) rowsAt(now time.Time, rows int) int {
	if now.Sub(l.until) > drawTime {
		return rows
	}
	return max(rows, l.rows)
}

// isShown reports whether the screen still has the larger view. Until bubbletea has drawn the
// smaller one, nothing may be printed: it would then erase from where the cursor was before the
// print, and with the larger view the rows above it (cursedRenderer.clearScreen and insertAbove).
func (l larger) isShown(now time.Time, writes *atomic.Int64) bool {
	since := now.Sub(l.until)
	return since < 3*frameTime || since < drawTime && writes != nil && writes.Load() == l.erased
}

// process takes items from the backlog, once the size of the window is known. When rows
// wait to be printed, the backlog has to wait too, so that memory stays bounded.
func (m *model) process() tea.Cmd {
	pause := tea.Tick(batchPause, func(time.Time) tea.Msg { return batchDue{} })
	if m.height == 0 && m.backlog.isEnding() { // nothing can be shown
		return tea.Quit
	}
	if m.height == 0 || len(m.paper.rows) > 10*maxLive+m.height && m.drawn {
		return pause
	}
	items := m.backlog.take(batchBytes)
	if len(items) == 0 {
		return m.backlog.listen
	}
	cmds := []tea.Cmd{pause}
	for _, item := range items {
		cmds = append(cmds, m.item(item))
	}
	m.refresh()
	return tea.Batch(cmds...)
}

// item processes one item of the backlog.
func (m *model) item(item any) tea.Cmd {
	switch item := item.(type) {
	case converse.Event:
		m.happened(item)
	case turnOver:
		m.turnOver()
	case note:
		m.paper.write(item.text, m.columns())
	case Status:
		m.status = item
	case readiness:
		m.ready = item.ready
		m.paper.endLine(m.columns())
		if m.ready {
			m.turn.running = false
		}
	case restored:
		if m.input.empty() {
			m.input.set(item.text)
		}
	case busy:
		if len(m.busy) == 0 {
			m.busySince = m.now()
		}
		m.busy = item.what
	case opened:
		return item.question.begin(m)
	case withdrawn:
		item.question.withdraw(m)
	case leaving:
		m.paper.endLine(m.columns())
		m.quitting = true
	}
	return nil
}

// resize fits everything into a window.
func (m *model) resize(width, height int) {
	m.width, m.height, m.rows = width, height, min(m.rows, height-1)
	m.style.Width, m.style.ImageRows = m.columns(), max(1, height-10)
	if m.turn.answer != nil {
		m.turn.answer.SetStyle(m.style)
		m.refresh()
	}
	m.input.resize(m.columns(), height/3)
	if m.question != nil {
		m.question.layOut(m)
	}
}

// refresh renders the unfinished end of the answer.
func (m *model) refresh() {
	if m.turn.answer != nil {
		m.turn.rest = m.turn.answer.Tail()
	}
}

// columns returns how many columns of a row are used. The last one stays empty, because
// terminals differ in what they do after it.
func (m *model) columns() int { return max(20, m.width-1) }

// say adds a line to the transcript.
func (m *model) say(text string) {
	m.paper.endLine(m.columns())
	m.paper.add(text, m.columns())
}

// clean removes secrets.
func (m *model) clean(text string) string {
	if m.options.Redact == nil {
		return text
	}
	return m.options.Redact(text)
}
