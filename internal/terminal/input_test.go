// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/paste"
)

// typist types pieces, each after a delay; the last piece follows the question.
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
