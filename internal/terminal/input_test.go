// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/paste"
)

// piece is typed after a delay; the last one of a test follows the question.
type piece struct {
	after time.Duration
	text  string
}

// What arrives before the input has been quiet is dropped: also a paste that comes
// in pieces, the end of a paste that began at another prompt, and one that never
// ends.
func TestDiscard(t *testing.T) {
	const slow = quiet * 3
	for name, pieces := range map[string][]piece{
		"nothing":         {{slow, "x"}},
		"typed ahead":     {{0, "y\ry\r"}, {slow, "x"}},
		"still typing":    {{0, "y\r"}, {quiet / 2, "y\r"}, {quiet / 2, "y\r"}, {slow, "x"}},
		"paste in pieces": {{0, paste.Begins + "y\r"}, {slow, "y\r" + paste.Ends}, {slow, "x"}},
		"split sequences": {{0, "\x1b[20"}, {0, "0~y"}, {slow, "\r\x1b[2"}, {0, "01~"}, {slow, "x"}},
		"endless paste":   {{0, paste.Begins + "y\r"}, {quietPaste * 2, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				in := newInput(r, nil)
				go func() {
					for _, p := range pieces {
						time.Sleep(p.after)
						io.WriteString(w, p.text)
					}
					w.Close()
				}()
				if err := in.discard(t.Context()); err != nil {
					t.Fatal(err)
				}
				if b, err := in.next(t.Context()); b != 'x' || err != nil {
					t.Errorf("the answer begins with %q, %v", b, err)
				}
				_, _ = in.next(t.Context())
			})
		})
	}
}

func TestDiscardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		in := newInput(r, nil)
		go func() { io.WriteString(w, "y\r\x03") }()
		if err := in.discard(t.Context()); !errors.Is(err, ErrInterrupted) {
			t.Errorf("after Ctrl-C: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := in.discard(ctx); !errors.Is(err, gone) {
			t.Errorf("after the end of the context: %v", err)
		}
		w.Close()
		if err := in.discard(t.Context()); err != nil {
			t.Errorf("at the end of the input: %v", err)
		}
	})
}

// Lines that arrive without a pause are one message, and so is a paste in brackets, however
// slowly it arrives.
func TestMessage(t *testing.T) {
	for name, test := range map[string]struct {
		pieces []piece
		want   []string
	}{
		"two lines with a pause":     {[]piece{{0, "one\n"}, {quiet * 2, "two\n"}}, []string{"one", "two"}},
		"pasted lines":               {[]piece{{0, "so: one\ntwo\n"}, {quiet / 2, "three\n"}, {quiet * 2, "next\n"}}, []string{"so: one\ntwo\nthree", "next"}},
		"without the last newline":   {[]piece{{0, "one\ntwo"}, {quiet * 9, " typed\n"}}, []string{"one\ntwo typed"}},
		"brackets":                   {[]piece{{0, "a " + paste.Begins + "one\n"}, {quiet * 9, "two" + paste.Ends + " b\n"}}, []string{"a one\ntwo b"}},
		"brackets that do not close": {[]piece{{0, paste.Begins + "one\n"}, {quiet * 9, "two\n"}}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				in := newInput(r, nil)
				go func() {
					for _, p := range test.pieces {
						time.Sleep(p.after)
						io.WriteString(w, p.text)
					}
					time.Sleep(time.Hour) // a terminal has no end
					w.Close()
				}()
				for _, want := range test.want {
					got, err := in.message(t.Context())
					if got != want || want == "" && !errors.Is(err, io.EOF) {
						t.Errorf("%q, %v; want %q", got, err, want)
					}
				}
				_, _ = in.next(t.Context())
			})
		})
	}
}

// Ctrl-C just after Enter drops the message, and the end of the context does, too.
func TestAMessageIsTakenBack(t *testing.T) {
	gone := errors.New("gone")
	for _, want := range []error{ErrInterrupted, gone} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			interrupts := make(chan os.Signal, 1)
			in := newInput(r, interrupts)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				io.WriteString(w, "one\n")
				time.Sleep(quiet / 2)
				if errors.Is(want, gone) {
					cancel(gone)
				} else {
					interrupts <- os.Interrupt
				}
				w.Close()
			}()
			if got, err := in.message(ctx); got != "" || !errors.Is(err, want) {
				t.Errorf("%q, %v; want %v", got, err, want)
			}
			_, _ = in.next(t.Context())
		})
	}
}
