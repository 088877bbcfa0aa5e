// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// lineEditor reads lines from a person: with editing and a history on a terminal, and
// otherwise line by line. Its methods may be called concurrently; one question is asked
// at a time.
type lineEditor struct {
	screen   *Screen
	input    *input
	keyboard *os.File      // the terminal that the person types on, or nil
	terminal *os.File      // keyboard if lines can be edited, else nil
	turns    chan struct{} // holds a value while no question is open
	history  term.History  // nil until the first line
}

// newLineEditor reads from stdin. A value from interrupts interrupts the question that is
// open.
func newLineEditor(s *Screen, stdin *os.File, interrupts <-chan os.Signal) *lineEditor {
	e := &lineEditor{screen: s, input: newInput(stdin, interrupts), turns: make(chan struct{}, 1)}
	e.turns <- struct{}{}
	if term.IsTerminal(int(stdin.Fd())) {
		e.keyboard = stdin
	}
	if e.keyboard != nil && s.Live && IsTerminal(stdin) {
		e.terminal = stdin
	}
	return e
}

// question asks for an answer. The prompt may have several lines. On a terminal, only
// text typed after the last line of the prompt is an answer; piped input was prepared in
// advance and answers in its order.
func (e *lineEditor) question(ctx context.Context, prompt string) (string, error) {
	return e.read(ctx, prompt, false)
}

func (e *lineEditor) read(ctx context.Context, prompt string, remember bool) (string, error) {
	select {
	case <-e.turns:
		defer func() { e.turns <- struct{}{} }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if e.keyboard == nil {
		if !remember {
			e.screen.Note("%s", prompt)
		}
		return e.input.line(ctx)
	}
	ask := e.edit
	if e.terminal == nil {
		ask = e.readPlain
	}
	for prompt = e.begin(prompt); ; {
		text, err := ask(ctx, prompt, remember)
		if !errors.Is(err, errTooLong) {
			return text, err
		}
		e.screen.Note("The text is not sent, because it is longer than 1 MiB. Send it from a file, as in: consort run < FILE")
	}
}

// begin prints all lines of a prompt except the last, which it returns.
func (e *lineEditor) begin(prompt string) (last string) {
	end := strings.LastIndexByte(prompt, '\n')
	if end > 0 {
		e.screen.Note("%s", prompt[:end])
	}
	return prompt[end+1:]
}

// maxPlain is the size of the longest line, in bytes, that Linux passes on in plain mode;
// it drops the rest of a longer one (n_tty.c, N_TTY_BUF_SIZE).
const maxPlain = 4095

// readPlain reads a line, or the lines of a paste. The terminal edits the line itself. If the
// error is errTooLong, all of the text was dropped.
func (e *lineEditor) readPlain(ctx context.Context, prompt string, remember bool) (string, error) {
	defer e.screen.Above(e.screen.Stderr)()
	if !remember {
		if err := e.discardTyped(ctx); err != nil {
			return "", err
		}
	}
	for {
		e.screen.ask(prompt)
		text, err := e.input.message(ctx)
		if errors.Is(err, errTooLong) {
			return "", cmp.Or(e.discardTyped(ctx), err)
		}
		long := func(line string) bool { return len(line) >= maxPlain }
		if err != nil || !slices.ContainsFunc(strings.Split(text, "\n"), long) {
			return text, err
		}
		e.screen.Note("The text is not sent, because the terminal cuts lines of %d bytes and more. Send it from a file, as in: consort run < FILE", maxPlain)
	}
}

// discardTyped drops text already typed on the keyboard. It uses raw mode, because an
// unfinished line cannot be read otherwise.
func (e *lineEditor) discardTyped(ctx context.Context) error {
	if e.keyboard == nil {
		return nil
	}
	fd := int(e.keyboard.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	return errors.Join(e.input.discard(ctx), term.Restore(fd, before))
}

// edit reads a line, or all lines of one paste, from the terminal in raw mode. If the error is
// errTooLong, all of the text was dropped.
func (e *lineEditor) edit(ctx context.Context, prompt string, remember bool) (string, error) {
	keyboard := &keys{in: e.input, ctx: ctx}
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keyboard, e.screen.Stderr}, prompt)
	if remember && e.history != nil {
		editor.History = e.history
	} else if remember {
		e.history = editor.History
	}
	defer e.screen.Above(editor)() // runs after the mode is restored
	fd := int(e.terminal.Fd())
	if width, height, err := term.GetSize(fd); err == nil && width > 0 && height > 0 {
		editor.SetSize(width, height)
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, before)
	editor.SetBracketedPasteMode(true)
	defer editor.SetBracketedPasteMode(false)
	if !remember {
		if err := e.input.discard(ctx); err != nil {
			return "", err
		}
	}
	line, err := readPasted(editor)
	if errors.Is(err, errTooLong) {
		err = cmp.Or(e.input.discard(ctx), err)
	}
	if err != nil {
		io.WriteString(e.screen.Stderr, "\r\n")
		return "", cmp.Or(keyboard.err, err)
	}
	return line, nil
}

// readPasted reads one line, or all lines of one paste.
func readPasted(editor *term.Terminal) (string, error) {
	var text strings.Builder
	for {
		line, err := editor.ReadLine()
		text.WriteString(line)
		if !errors.Is(err, term.ErrPasteIndicator) {
			return text.String(), err
		}
		if text.Len() > maxLine {
			return "", errTooLong
		}
		text.WriteString("\n")
	}
}
