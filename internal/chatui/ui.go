// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
	"golang.org/x/term"
)

// Options are the options of a [UI].
type Options struct {
	// Screen receives the output of the rest of the program. The UI shows it above its
	// own rows while it runs. Its outputs must be the terminal.
	Screen *terminal.Screen
	// Stdin is the terminal.
	Stdin *os.File
	// Interrupts receives a value for each interrupt that comes from outside. The UI
	// reads it while it waits for a message.
	Interrupts <-chan os.Signal
	// Interrupt is called when the person presses Ctrl-C. It must not block, and should
	// put a value into Interrupts.
	Interrupt func()
	// Cleared is called before Interrupt if Ctrl-C has cleared a text that the person was writing;
	// nil does nothing. It must not block.
	Cleared func()
	// Status returns the current status. It is called often and must not block.
	Status func() Status
	// Complete proposes completions of a text, which ends at the cursor; nil proposes
	// none. It may take a while.
	Complete func(ctx context.Context, text string) Completions
	// History is the file that keeps the messages for the next chats; empty keeps none.
	History string
	// Lend is called when an editor gets the terminal, and the
	// function that it returns when it has ended: interrupts are that program's in between.
	Lend func() (end func())
	// Open opens a page in the browser.
	Open func(ctx context.Context, url string) error
	// Redact removes secrets from a text; nil leaves texts as they are.
	Redact func(text string) string
	// RedactPart is like Redact for texts that stream in.
	RedactPart redact.PartFunc
}

// UI is the screen of a conversation while it runs, and the person in front of it. It
// implements [terminal.Renderer] and [approvals.Asker]. Its methods may be called
// concurrently; one question is asked at a time.
type UI struct {
	options Options
	backlog *backlog
	lines   chan line
	turns   chan struct{} // holds a value while no question is open
	restore func()        // gives the screen its output back
	kill    func()        // ends the program without a last view

	over  chan struct{} // closed when the program has ended
	ended sync.Once     // closes over
	err   error         // why it ended; set before over is closed
	other sync.WaitGroup
	once  sync.Once
}

// Supported reports whether a UI can run on these: all of them must be the terminal, and
// more than plain lines, and have a size.
func Supported(screen *terminal.Screen, stdin *os.File) bool {
	if screen.Plain || !terminal.IsTerminal(stdin) || !terminal.IsTerminal(screen.Stdout) || !terminal.IsTerminal(screen.Stderr) {
		return false
	}
	width, height, err := term.GetSize(int(screen.Stdout.Fd()))
	return err == nil && width > 0 && height > 0
}

// Start starts a UI. The caller must close it.
func Start(options Options) *UI {
	u := &UI{options: options, backlog: newBacklog(), lines: make(chan line, 1), turns: make(chan struct{}, 1), over: make(chan struct{})}
	u.turns <- struct{}{}
	m := newModel(&u.options, u.backlog, u.lines)
	m.writes = new(atomic.Int64)
	program := tea.NewProgram(m, tea.WithInput(options.Stdin), tea.WithOutput(output{options.Screen.Stdout, m.writes}), tea.WithoutSignalHandler())
	u.restore = options.Screen.Above(writer{u})
	u.kill = program.Kill
	u.other.Go(u.watchStatus)
	u.other.Go(func() {
		_, err := program.Run()
		u.end(cmp.Or(err, io.EOF))
	})
	return u
}

// end says that the program has ended. Only the first call has an effect.
func (u *UI) end(err error) {
	u.ended.Do(func() {
		u.err = err
		close(u.over)
		u.backlog.close()
	})
}

// newModel returns the model of a screen whose size is not known yet.
func newModel(options *Options, b *backlog, lines chan<- line) *model {
	m := &model{
		options: options, backlog: b, lines: lines,
		paint: options.Screen.Results, style: rendering.StyleFor(os.Getenv, 0), now: time.Now,
		input: newInput("> "), folds: folds{next: -1}, programs: programs{},
	}
	var err error
	if m.history, err = loadHistory(options.History); err != nil {
		m.say(m.paint.Faint("The line history cannot be read: " + display.Line(err.Error())))
	}
	return m
}

// How long Close waits for the last rows to be drawn, and after that for the terminal.
const (
	maxLastRows = 5 * time.Second
	maxRelease  = time.Second
)

// Close ends the UI and gives the terminal back. The text on the screen stays. If the
// terminal takes no output, or another program has it, Close waits for a few seconds.
func (u *UI) Close() error {
	u.once.Do(func() {
		u.backlog.leave()
		over := u.isOver(maxLastRows)
		if !over {
			go u.kill() // it may have to wait, too
			over = u.isOver(maxRelease)
		}
		if over {
			u.other.Wait()
		} else {
			u.end(errors.New("it did not end in time"))
		}
		u.restore()
		for _, item := range u.backlog.take(maxBacklog * 2) {
			if n, ok := item.(note); ok {
				io.WriteString(u.options.Screen.Stderr, n.text)
			}
		}
	})
	if errors.Is(u.err, io.EOF) {
		return nil
	}
	return fmt.Errorf("the screen failed: %w", u.err)
}

// isOver waits for the end of the program, and reports whether it has ended in time.
func (u *UI) isOver(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-u.over:
		return true
	case <-timer.C:
		return false
	}
}

// writer is the UI as the destination of other output.
type writer struct{ *UI }

func (w writer) Write(p []byte) (int, error) {
	if !w.backlog.put(note{string(p)}, len(p)) {
		return w.options.Screen.Stderr.Write(p)
	}
	return len(p), nil
}

// Busy implements [terminal.Live].
func (w writer) Busy(what []string) { w.backlog.put(busy{what}, 0) }

// Interactive reports true: the person sees prompts.
func (u *UI) Interactive() bool { return true }

// Message waits for the next message. The error is [terminal.ErrInterrupted] after an
// interrupt, and io.EOF when the person leaves.
func (u *UI) Message(ctx context.Context, _ string) (string, error) {
	u.backlog.put(readiness{true}, 0)
	select {
	case said := <-u.lines:
		return said.text, said.err
	case <-u.options.Interrupts:
		return "", terminal.ErrInterrupted
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-u.over:
		return "", u.err
	}
}

// Restore puts a message that was not sent back into the input.
func (u *UI) Restore(text string) { u.backlog.put(restored{text}, len(text)) }

// Show implements [terminal.Renderer].
func (u *UI) Show(event converse.Event) error {
	size := 256
	switch e := event.(type) {
	case converse.TextDelta:
		size += len(e.Text)
	case converse.ReasoningDelta:
		size += len(e.Text)
	case converse.InvocationCompleted:
		size += len(e.Invocation.Arguments) + sizeOf(e.Result.Content)
	}
	if !u.backlog.put(event, size) {
		<-u.over
		return u.err
	}
	return nil
}

// Done implements [terminal.Renderer].
func (u *UI) Done() { u.backlog.put(turnOver{}, 0) }

// AskApproval implements [approvals.Asker].
func (u *UI) AskApproval(ctx context.Context, ask approvals.Question) (approvals.Answer, error) {
	paint := u.options.Screen.Results
	if clean := u.options.Redact; clean != nil { // before rows divide a secret
		ask.Arguments = redact.JSON(ask.Arguments, clean)
	}
	q := &question{ask: "run it?", render: func(style rendering.Style) []string { return approvalRows(style, paint, ask) }, choices: []choice{
		{key: "y", label: "once", allows: true},
		{key: "c", label: "for this conversation", allows: true},
	}}
	if ask.Always {
		q.choices = append(q.choices, choice{key: "a", label: "always for this tool", allows: true})
	}
	q.choices = append(q.choices, choice{key: "n", label: "no"}, choice{key: "d", label: "no, because…", reason: "why not? "})
	if ask.Later {
		q.choices = append(q.choices, choice{key: "l", label: "later"})
	}
	given, err := u.ask(ctx, q)
	switch {
	case errors.Is(err, io.EOF) && ask.Later, err == nil && given.key == "l":
		return approvals.Answer{Choice: approvals.Later}, nil
	case err != nil:
		return approvals.Answer{}, fmt.Errorf("the user did not answer: %w", err)
	}
	switch given.key {
	case "y":
		return approvals.Answer{Choice: approvals.Once}, nil
	case "c":
		return approvals.Answer{Choice: approvals.Conversation}, nil
	case "a":
		return approvals.Answer{Choice: approvals.Always}, nil
	}
	return approvals.Answer{Reason: given.text}, nil
}

// ask shows a question and waits for the answer. Its error is that of the answer, or the
// cause of ctx.
func (u *UI) ask(ctx context.Context, q *question) (reply, error) {
	select {
	case <-u.turns:
		defer func() { u.turns <- struct{}{} }()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	q.answers = make(chan reply, 1)
	u.backlog.put(opened{q}, 0)
	select {
	case given := <-q.answers:
		return given, given.err
	case <-ctx.Done():
		u.backlog.put(withdrawn{q}, 0)
		return reply{}, context.Cause(ctx)
	case <-u.over:
		return reply{}, u.err
	}
}
