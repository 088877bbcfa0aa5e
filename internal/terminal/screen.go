// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// Screen receives all output: results go to standard output, everything else to standard
// error. On a terminal it keeps a block of lines about current activity at the bottom,
// below all other output. All methods may be called concurrently.
type Screen struct {
	Stdout, Stderr *os.File
	Results, Notes Palette // for standard output and standard error
	Live           bool    // standard error can show lines that change
	Plain          bool    // standard error is a terminal for plain lines only
	shared         bool    // both outputs are terminals, and so probably the same

	mu      sync.Mutex
	clean   func(string) string // redacts secrets from all output; nil redacts none
	part    redact.PartFunc     // like clean, for texts that stream in
	encode  func(string) string // makes a note a line of a JSON log; nil leaves it as it is
	lines   []*Activity
	tail    func() []string // the end of a text that is not finished; nil without any
	drawn   int             // lines of the block on the screen
	block   string          // the block on the screen
	midline bool            // standard output is in the middle of a line
	above   io.Writer       // takes all output while a question is open; else nil
	err     error

	ticking chan struct{} // closed to end the ticker; nil if there is none
	ticker  sync.WaitGroup
}

// Live is an output that also shows what is going on, see [Screen.Above].
type Live interface {
	io.Writer
	// Busy replaces what is shown to go on.
	Busy(what []string)
}

// Activity is a line about something that is going on.
type Activity struct {
	screen *Screen
	text   string
	since  time.Time
	note   string
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const tick = 80 * time.Millisecond

// maxLive bounds the lines of the block, which must fit on the screen.
const maxLive = 10

// minLive is the least number of columns that the block needs.
const minLive = 20

// NewScreen returns the screen of two outputs, which the caller keeps open.
func NewScreen(stdout, stderr *os.File) *Screen {
	return &Screen{
		Stdout: stdout, Stderr: stderr,
		Results: paletteFor(stdout), Notes: paletteFor(stderr),
		Live:   IsTerminal(stderr),
		Plain:  isAnyTerminal(stderr) && !IsTerminal(stderr),
		shared: IsTerminal(stderr) && IsTerminal(stdout),
	}
}

// MakePlain limits the output to plain lines without colours. It must be called before any
// output.
func (s *Screen) MakePlain() {
	s.Plain, s.Live = true, false
	s.Results, s.Notes = s.Results.plain(), s.Notes.plain()
}

// Redact sets the functions that redact secrets from all further output, and from texts
// that stream in. part may be nil if no text streams in.
func (s *Screen) Redact(clean func(string) string, part redact.PartFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean, s.part = clean, part
}

// cleaned returns text without secrets; s.mu is held.
func (s *Screen) cleaned(text string) string {
	if s.clean == nil {
		return text
	}
	return s.clean(text)
}

// streamed returns the function that redacts secrets from texts that stream in; nil if it
// was not set.
func (s *Screen) streamed() redact.PartFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.part
}

// redacted returns text without secrets.
func (s *Screen) redacted(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cleaned(text)
}

// Err returns the first error of writing to standard output.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Print writes to standard output.
func (s *Screen) Print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if _, err := io.WriteString(s.to(s.Stdout), s.cleaned(text)); err != nil && s.err == nil {
		s.err = fmt.Errorf("standard output: %w", err)
	}
	if text != "" {
		s.midline = !strings.HasSuffix(text, "\n")
	}
	s.redraw()
}

// PrintJSON writes JSON to standard output. On a terminal it escapes invisible
// characters.
func (s *Screen) PrintJSON(text string) {
	if s.Results.terminal {
		text = display.EscapeJSON(text)
	}
	s.Print(text)
}

// Write writes whole lines to standard output, as result does.
func (s *Screen) Write(p []byte) (int, error) {
	s.Print(string(p))
	return len(p), s.Err()
}

// endLine ends the current line on standard output, if it is not empty.
func (s *Screen) endLine() {
	s.mu.Lock()
	midline := s.midline
	s.mu.Unlock()
	if midline {
		s.Print("\n")
	}
}

// Hint writes a faint line to standard error, for text of less importance.
func (s *Screen) Hint(text string) { s.Note("%s", s.Notes.Faint(text)) }

// Note writes a line to standard error.
func (s *Screen) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	text := s.cleaned(fmt.Sprintf(format, args...))
	if s.encode != nil {
		text = s.encode(text)
	}
	fmt.Fprintln(s.to(s.Stderr), text)
	s.redraw()
}

// ask writes a prompt to standard error; the person types behind it.
func (s *Screen) ask(prompt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakLine()
	io.WriteString(s.Stderr, s.cleaned(prompt))
}

// EncodeNotes sets a function that makes each further note a line of a JSON log.
func (s *Screen) EncodeNotes(encode func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encode = encode
}

// to returns the current destination of output for file; s.mu is held.
func (s *Screen) to(file *os.File) io.Writer {
	if s.above != nil && isAnyTerminal(file) {
		return s.above
	}
	return file
}

// breakLine ends the line of standard output if both outputs are one terminal.
func (s *Screen) breakLine() {
	if s.shared && s.midline {
		fmt.Fprintln(s.to(s.Stderr))
		s.midline = false
	}
}

// LogWriter returns the writer for the logger.
func (s *Screen) LogWriter() zapcore.WriteSyncer { return logWriter{s} }

// logWriter writes the lines of a log above the block. On a terminal, what servers and models wrote into a line cannot
// control it: zap escapes only the control characters of ASCII, and none in a message.
type logWriter struct{ screen *Screen }

func (w logWriter) Write(p []byte) (int, error) {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	line := s.cleaned(string(p))
	if isAnyTerminal(s.Stderr) {
		line = visibleLine(line)
	}
	io.WriteString(s.to(s.Stderr), line)
	s.redraw()
	return len(p), nil
}

func (w logWriter) Sync() error { return nil }

// Begin adds a line about current activity; end removes it.
func (s *Screen) Begin(text string) *Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := &Activity{screen: s, text: s.cleaned(text), since: time.Now()}
	s.erase()
	s.lines = append(s.lines, line)
	s.pass()
	s.redraw()
	s.startTicker()
	return line
}

// startTicker starts to redraw the block again and again; s.mu is held.
func (s *Screen) startTicker() {
	if s.Live && s.ticking == nil {
		end := make(chan struct{})
		s.ticking = end
		s.ticker.Go(func() { s.animate(end) })
	}
}

// setTail sets the function that returns the end of a text that is not finished, which the
// block begins with; nil ends it. The function is called from another goroutine whenever
// the block is drawn, and must not use the screen.
func (s *Screen) setTail(tail func() []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.tail = tail
	s.redraw()
	if tail != nil {
		s.startTicker()
	}
}

// Say changes the note after the line.
func (a *Activity) Say(note string) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.note = note
}

// rename changes the text of the line.
func (a *Activity) rename(text string) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.text = text
}

// End removes the line.
func (a *Activity) End() {
	s := a.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.lines = slices.DeleteFunc(s.lines, func(l *Activity) bool { return l == a })
	s.pass()
	s.redraw()
}

// Above hides the block, and sends all output for the terminal through above, which shows
// it above a question or a screen of its own. If above is [Live], it shows the lines of the
// block, too. The caller must call restore to get the block back.
func (s *Screen) Above(above io.Writer) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	s.above = above
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.above = nil
		s.redraw()
	}
}

// pass passes the lines of the block to a [Live] output; s.mu is held.
func (s *Screen) pass() {
	if live, ok := s.above.(Live); ok {
		what := make([]string, len(s.lines))
		for i, line := range s.lines {
			what[i] = line.text
		}
		live.Busy(what)
	}
}

// Close removes the block permanently and waits for the ticker.
func (s *Screen) Close() {
	s.mu.Lock()
	s.erase()
	s.lines, s.tail = nil, nil
	if s.ticking != nil {
		close(s.ticking)
		s.ticking = nil
	}
	s.mu.Unlock()
	s.ticker.Wait()
}

func (s *Screen) animate(end <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			s.mu.Lock()
			s.redraw()
			s.mu.Unlock()
		}
	}
}

// erase removes the block; s.mu is held.
func (s *Screen) erase() {
	if s.drawn > 0 {
		io.WriteString(s.Stderr, s.erasure())
		s.drawn, s.block = 0, ""
	}
}

// EraseBelow erases all from the cursor on and leaves it there, as "\x1b[J" does. tmux copies
// all that a sequence erases from the first cell of the window on to its scrollback (option
// scroll-on-clear). So this one erases the row first, and the rest from the next cell on.
const EraseBelow = "\x1b7\x1b[K\x1b[C\x1b[J\x1b8"

// erasure returns the sequence that removes the block; s.mu is held.
func (s *Screen) erasure() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dF", s.drawn) + EraseBelow // up, to the first column
}

// redraw shows the block, or replaces it in one write unless it is the same; s.mu is held.
func (s *Screen) redraw() {
	rows := s.blockRows()
	block := strings.Join(rows, "")
	if block != s.block {
		io.WriteString(s.Stderr, s.erasure()+block)
		s.drawn, s.block = len(rows), block
	}
}

// blockRows returns the rows of the block, none if other text is at its position or the window
// is too narrow. Each takes one row of the window, so that erasure goes up far enough. s.mu is
// held.
func (s *Screen) blockRows() []string {
	if !s.Live || s.above != nil || s.midline && s.shared {
		return nil
	}
	width := s.width()
	if width < minLive {
		return nil
	}
	frame := spinner[time.Now().UnixMilli()/tick.Milliseconds()%int64(len(spinner))]
	var rows []string
	shown := s.lines[:min(len(s.lines), maxLive)]
	if s.tail != nil {
		rows = s.tail()
		rows = rows[max(0, len(rows)-max(1, s.height()-len(shown)-2)):]
		if slices.ContainsFunc(rows, func(row string) bool { return Width(ansi.Strip(row)) > width }) {
			rows = nil // the window has become narrower since they were made
		}
		for i, row := range rows {
			rows[i] = row + "\n"
		}
	}
	for _, line := range shown {
		head := fmt.Sprintf("  %s %s", frame, line.text)
		tail := strings.TrimRight(fmt.Sprintf("  %.1fs %s", time.Since(line.since).Seconds(), s.cleaned(line.note)), " ")
		head = Fit(head, max(width/2, width-Width(tail)))
		rows = append(rows, s.Notes.Name(head)+s.Notes.Faint(Fit(tail, width-Width(head)))+"\n")
	}
	if more := len(s.lines) - len(shown); more > 0 {
		rows = append(rows, fmt.Sprintf("  … and %d more\n", more))
	}
	return rows
}

// ResultColumns returns the number of columns of a line of results: the width of the terminal,
// or 80 for programs and files.
func (s *Screen) ResultColumns() int {
	if width, _, err := term.GetSize(int(s.Stdout.Fd())); err == nil && width > 20 {
		return width
	}
	return 80
}

// width returns the number of columns of a line, which leaves the last one of the window free.
// A window of unknown size counts as one of 80 columns. Files and pipes have 119.
func (s *Screen) width() int {
	switch width, _, err := term.GetSize(int(s.Stderr.Fd())); {
	case err != nil:
		return 119
	case width <= 0:
		return 79
	default:
		return width - 1
	}
}

// height returns the number of rows of the terminal, or a default if it is unknown.
func (s *Screen) height() int {
	if _, height, err := term.GetSize(int(s.Stderr.Fd())); err == nil && height > 0 {
		return height
	}
	return 24
}
