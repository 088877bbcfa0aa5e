// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/shown"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// screen receives all output: results go to standard output, everything else to standard
// error. On a terminal it keeps a block of lines about current activity at the bottom,
// below all other output. All methods may be called concurrently.
type screen struct {
	stdout, stderr *os.File
	results, notes palette // for standard output and standard error
	live           bool    // standard error can show lines that change
	shared         bool    // both outputs are terminals, and so probably the same

	mu      sync.Mutex
	clean   func(string) string // redacts secrets from all output; nil redacts none
	encode  func(string) string // makes a note a line of a JSON log; nil leaves it as it is
	lines   []*activity
	drawn   int       // lines of the block on the screen
	midline bool      // standard output is in the middle of a line
	above   io.Writer // takes all output while a question is open; else nil
	err     error

	ticking chan struct{} // closed to end the ticker; nil if there is none
	ticker  sync.WaitGroup
}

// activity is a line about something that is going on.
type activity struct {
	screen *screen
	text   string
	since  time.Time
	note   string
}

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const tick = 80 * time.Millisecond

// maxLive bounds the lines of the block, which must fit on the screen.
const maxLive = 10

func newScreen(stdout, stderr *os.File) *screen {
	return &screen{
		stdout: stdout, stderr: stderr,
		results: paletteFor(stdout), notes: paletteFor(stderr),
		live:   isTerminal(stderr),
		shared: isTerminal(stderr) && isTerminal(stdout),
	}
}

// keep sets the function that redacts secrets from all further output.
func (s *screen) keep(clean func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean = clean
}

// cleaned returns text without secrets; s.mu is held.
func (s *screen) cleaned(text string) string {
	if s.clean == nil {
		return text
	}
	return s.clean(text)
}

// failure returns the first error of writing to standard output.
func (s *screen) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// result writes to standard output.
func (s *screen) result(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if _, err := io.WriteString(s.to(s.stdout), s.cleaned(text)); err != nil && s.err == nil {
		s.err = fmt.Errorf("standard output: %w", err)
	}
	if text != "" {
		s.midline = !strings.HasSuffix(text, "\n")
	}
	s.draw()
}

// resultJSON writes JSON to standard output. On a terminal it escapes invisible
// characters.
func (s *screen) resultJSON(text string) {
	if s.results.terminal {
		text = shown.EscapeJSON(text)
	}
	s.result(text)
}

// Write writes whole lines to standard output, as result does.
func (s *screen) Write(p []byte) (int, error) {
	s.result(string(p))
	return len(p), s.failure()
}

// endLine ends the current line on standard output, if it is not empty.
func (s *screen) endLine() {
	s.mu.Lock()
	midline := s.midline
	s.mu.Unlock()
	if midline {
		s.result("\n")
	}
}

// note writes a line to standard error.
func (s *screen) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	text := s.cleaned(fmt.Sprintf(format, args...))
	if s.encode != nil {
		text = s.encode(text)
	}
	fmt.Fprintln(s.to(s.stderr), text)
	s.draw()
}

// encodeNotes sets a function that makes each further note a line of a JSON log.
func (s *screen) encodeNotes(encode func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encode = encode
}

// to returns the current destination of output for file; s.mu is held.
func (s *screen) to(file *os.File) io.Writer {
	if s.above != nil && isTerminal(file) {
		return s.above
	}
	return file
}

// breakLine ends the line of standard output if both outputs are one terminal.
func (s *screen) breakLine() {
	if s.shared && s.midline {
		fmt.Fprintln(s.stderr)
		s.midline = false
	}
}

// logs returns the writer for the logger.
func (s *screen) logs() zapcore.WriteSyncer { return logWriter{s} }

// logWriter writes the lines of a log above the block.
type logWriter struct{ screen *screen }

func (w logWriter) Write(p []byte) (int, error) {
	s := w.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	io.WriteString(s.to(s.stderr), s.cleaned(string(p)))
	s.draw()
	return len(p), nil
}

func (w logWriter) Sync() error { return nil }

// begin adds a line about current activity; end removes it.
func (s *screen) begin(text string) *activity {
	line := &activity{screen: s, text: text, since: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.lines = append(s.lines, line)
	s.draw()
	if s.live && s.ticking == nil {
		end := make(chan struct{})
		s.ticking = end
		s.ticker.Go(func() { s.animate(end) })
	}
	return line
}

// say changes the note after the line.
func (a *activity) say(note string) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.note = note
}

// rename changes the text of the line.
func (a *activity) rename(text string) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.text = text
}

// end removes the line.
func (a *activity) end() {
	s := a.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.lines = slices.DeleteFunc(s.lines, func(l *activity) bool { return l == a })
	s.draw()
}

// ask hides the block while a question is open, and sends all output through above, which
// redraws the question below it. The caller must call answered to restore the block.
func (s *screen) ask(above io.Writer) (answered func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.breakLine()
	s.above = above
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.above = nil
		s.draw()
	}
}

// close removes the block permanently and waits for the ticker.
func (s *screen) close() {
	s.mu.Lock()
	s.erase()
	s.lines = nil
	if s.ticking != nil {
		close(s.ticking)
		s.ticking = nil
	}
	s.mu.Unlock()
	s.ticker.Wait()
}

func (s *screen) animate(end <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			s.mu.Lock()
			s.erase()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// erase removes the block; s.mu is held.
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.stderr, "\x1b[%dF\x1b[J", s.drawn) // up, to the first column; clear to the end
		s.drawn = 0
	}
}

// draw shows the block unless other text is at its position; s.mu is held.
func (s *screen) draw() {
	if !s.live || s.above != nil || s.midline && s.shared || len(s.lines) == 0 {
		return
	}
	frame := spinner[time.Now().UnixMilli()/tick.Milliseconds()%int64(len(spinner))]
	width := s.width()
	var block strings.Builder
	shown := s.lines[:min(len(s.lines), maxLive)]
	for _, line := range shown {
		head := fmt.Sprintf("  %s %s", frame, line.text)
		tail := strings.TrimRight(fmt.Sprintf("  %.1fs %s", time.Since(line.since).Seconds(), s.cleaned(line.note)), " ")
		head = fit(head, max(width/2, width-columns(tail)))
		block.WriteString(s.notes.name(head) + s.notes.faint(fit(tail, width-columns(head))) + "\n")
	}
	s.drawn = len(shown)
	if more := len(s.lines) - len(shown); more > 0 {
		fmt.Fprintf(&block, "  … and %d more\n", more)
		s.drawn++
	}
	io.WriteString(s.stderr, block.String())
}

// width returns the number of columns of a line, or a default if it is unknown.
func (s *screen) width() int {
	if width, _, err := term.GetSize(int(s.stderr.Fd())); err == nil && width > 20 {
		return width - 1
	}
	return 119
}
