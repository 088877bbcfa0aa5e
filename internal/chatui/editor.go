// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/internal/display"
)

// edited holds the text that an editor has left.
type edited struct {
	text string
	err  error
}

// edit opens the text in the person's editor.
func (m *model) edit() tea.Cmd {
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(words) == 0 {
		m.hint = "Set VISUAL or EDITOR to your editor."
		return nil
	}
	folder, err := os.MkdirTemp("", "consort-")
	if err != nil {
		m.hint = "The text cannot be edited: " + display.Line(err.Error())
		return nil
	}
	path := filepath.Join(folder, "message.md")
	if err := os.WriteFile(path, []byte(m.input.value()), 0o600); err != nil {
		m.hint = "The text cannot be edited: " + display.Line(errors.Join(err, os.RemoveAll(folder)).Error())
		return nil
	}
	program := &editing{exec.Command(words[0], append(words[1:], path)...), m.options.Lend}
	return tea.Exec(program, func(err error) tea.Msg {
		text, failed := os.ReadFile(path)
		return edited{strings.TrimRight(string(text), "\r\n"), errors.Join(err, failed, os.RemoveAll(folder))}
	})
}

// editing is an editor that has the terminal. It implements [tea.ExecCommand].
type editing struct {
	program *exec.Cmd
	lend    func() (end func()) // may be nil
}

// Run runs the editor.
func (e *editing) Run() error {
	if e.lend != nil {
		defer e.lend()()
	}
	return e.program.Run()
}

// SetStdin and SetStderr set the files of the editor.
func (e *editing) SetStdin(in io.Reader)   { e.program.Stdin = in }
func (e *editing) SetStderr(out io.Writer) { e.program.Stderr = out }

// SetStdout sets the terminal. The editor gets the file itself.
func (e *editing) SetStdout(out io.Writer) {
	e.program.Stdout = out
	if o, ok := out.(output); ok {
		e.program.Stdout = o.file
	}
}

// edited takes the text from the editor. The text in the input stays if that has failed.
func (m *model) edited(msg edited) {
	if msg.err != nil {
		m.hint = "The text was not edited: " + display.Line(msg.err.Error())
		return
	}
	m.input.set(msg.text)
}
