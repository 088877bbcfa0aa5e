// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/paste"
	"github.com/creack/pty"
)

// A text that is too long is dropped as a whole, and the person is asked again, in plain lines
// and with editing. Of piped input it is an error.
func TestTextsThatAreTooLong(t *testing.T) {
	lines := strings.Repeat(strings.Repeat("x", 2000)+"\n", maxLine/2000+100)
	for _, plain := range []bool{true, false} {
		outer, inner, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		defer inner.Close()
		go io.Copy(io.Discard, outer)
		notes, stderr, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer notes.Close()
		s := NewScreen(output(t), stderr)
		e := newLineEditor(s, inner, nil)
		if !plain {
			e.terminal = inner
		}
		go func() {
			shown := bufio.NewReader(notes)
			_, _ = shown.ReadString('>')
			go fmt.Fprint(outer, paste.Begins+lines+paste.Ends)
			for text := ""; !strings.Contains(text, "longer than 1 MiB") && err == nil; {
				text, err = shown.ReadString('\n')
			}
			_, _ = shown.ReadString('>')
			fmt.Fprint(outer, "short\r")
			_, _ = io.Copy(io.Discard, shown)
		}()
		if got, err := e.read(t.Context(), "> ", true); got != "short" || err != nil {
			t.Errorf("plain %v: %d bytes, %v", plain, len(got), err)
		}
		stderr.Close()
	}
	r, w := io.Pipe()
	go func() { io.WriteString(w, strings.ReplaceAll(lines, "\n", "")); w.Close() }()
	e := &lineEditor{input: newInput(r, nil), turns: make(chan struct{}, 1)}
	e.turns <- struct{}{}
	if _, err := e.read(t.Context(), "> ", true); err == nil {
		t.Error("there is no error for a pipe")
	}
	_, _ = io.Copy(io.Discard, r)
}
