// SPDX-License-Identifier: Apache-2.0

//go:build unix

package approve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/approve"
	"github.com/consort-go/consort/invoker"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// window is a terminal with its output.
type window struct {
	t     *testing.T
	outer *os.File
	inner *os.File // the input and output of a program

	mu      sync.Mutex
	shown   []byte
	seen    int // bytes that expect has passed
	changed chan struct{}
	over    chan struct{}
}

func newWindow(t *testing.T) *window {
	t.Helper()
	outer, inner, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := &window{t: t, outer: outer, inner: inner, changed: make(chan struct{}, 1), over: make(chan struct{})}
	go x.watch()
	t.Cleanup(func() { inner.Close(); outer.Close(); <-x.over })
	return x
}

func (x *window) watch() {
	defer close(x.over)
	buffer := make([]byte, 4096)
	for {
		n, err := x.outer.Read(buffer)
		x.mu.Lock()
		x.shown = append(x.shown, buffer[:n]...)
		x.mu.Unlock()
		select {
		case x.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// expect waits until text is shown after the previously expected text.
func (x *window) expect(text string) {
	x.t.Helper()
	deadline := time.After(time.Minute)
	for {
		x.mu.Lock()
		at := bytes.Index(x.shown[x.seen:], []byte(text))
		if at >= 0 {
			x.seen += at + len(text)
		}
		rest := string(x.shown[x.seen:])
		x.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-x.changed:
		case <-deadline:
			x.t.Fatalf("%q is not shown, only %q", text, rest)
		}
	}
}

// text returns all that was shown.
func (x *window) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.shown)
}

func (x *window) types(text string) {
	x.t.Helper()
	if _, err := x.outer.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

func removal(arguments string) converse.Approval {
	return converse.Approval{
		Ensemble: "files", Tool: "remove", Arguments: json.RawMessage(arguments),
		Definition: &invoker.Definition{Name: "remove", Description: "Remove a file."},
	}
}

// asked is the outcome of a question.
type asked struct {
	decision converse.Decision
	err      error
}

// ask asks on another goroutine.
func ask(ctx context.Context, f converse.ApproveFunc, call converse.Approval) <-chan asked {
	outcome := make(chan asked, 1)
	go func() {
		decision, err := f(ctx, call)
		outcome <- asked{decision, err}
	}()
	return outcome
}

func wants(t *testing.T, outcome <-chan asked, want converse.Decision) {
	t.Helper()
	if got := <-outcome; got.err != nil || !reflect.DeepEqual(got.decision, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestOnTerminal(t *testing.T) {
	t.Parallel()
	no := converse.Deny("The person said no.")
	for answer, want := range map[string]converse.Decision{
		"y\r": converse.Allow(), "YES\r": converse.Allow(), "\r": no, "n\r": no, "No\r": no, "\x04": no,
		"not today\r": converse.Deny("The person said no: not today"), "yy\x7f\r": converse.Allow(),
	} {
		x := newWindow(t)
		before, err := term.GetState(int(x.inner.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		outcome := ask(t.Context(), approve.OnTerminal(x.inner, x.inner), removal(`{"name":"a\u202eb.txt","text":"\u001b[2J"}`))
		x.expect("The model wants to call files__remove, which may destroy something")
		x.expect(`"name": "a\u202eb.txt"`)
		x.expect(`"text": "\u001b[2J"`)
		x.expect("run files__remove? [y/N, or a reason for no] ")
		x.types(answer)
		wants(t, outcome, want)
		if after, err := term.GetState(int(x.inner.Fd())); err != nil || !reflect.DeepEqual(after, before) {
			t.Errorf("after %q the terminal is in another mode; %v", answer, err)
		}
	}
}

// A question that does not fit the screen is allowed after its last part only.
func TestALongQuestion(t *testing.T) {
	t.Parallel()
	long := `{"text":"` + strings.Repeat("word ", 400) + `end"}`
	for _, test := range []struct {
		answers []string
		want    converse.Decision
	}{
		{[]string{"y\r", "\r", "y\r"}, converse.Allow()},
		{[]string{"y\r", "not that\r"}, converse.Deny("The person said no: not that")},
		{[]string{"n\r"}, converse.Deny("The person said no.")},
	} {
		x := newWindow(t)
		if err := pty.Setsize(x.inner, &pty.Winsize{Rows: 16, Cols: 80}); err != nil {
			t.Fatal(err)
		}
		outcome := ask(t.Context(), approve.OnTerminal(x.inner, x.inner), removal(long))
		for i, answer := range test.answers {
			if i < 2 {
				x.expect(fmt.Sprintf("part %d of 3 [Enter for more, or a reason for no] ", i+1))
			} else {
				x.expect("end\"")
				x.expect("run files__remove? [y/N, or a reason for no] ")
			}
			x.types(answer)
		}
		wants(t, outcome, test.want)
	}
}

// What is typed or pasted before the question is shown does not answer it, with or without
// its end, also a paste that takes long.
func TestTypedAhead(t *testing.T) {
	for name, before := range map[string]string{
		"lines": "y\ry\r", "part of a line": "y", "newlines": "y\n\ny\n", "a paste": "\x1b[200~y\r\x1b[201~", "half a paste": "\x1b[200~y\r",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newWindow(t)
			x.types(before)
			outcome := ask(t.Context(), approve.OnTerminal(x.inner, x.inner), removal(`{}`))
			x.expect("wants to call")
			x.types(before)
			x.expect("[y/N, or a reason for no] ")
			select {
			case got := <-outcome:
				t.Fatalf("the question is answered before anybody saw it: %+v", got)
			default:
			}
			x.types("seen\r")
			wants(t, outcome, converse.Deny("The person said no: seen"))
		})
	}
}

// The questions of one message come one after another.
func TestOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	x := newWindow(t)
	f := approve.OnTerminal(x.inner, x.inner)
	first, second := ask(t.Context(), f, removal(`{"n":1}`)), ask(t.Context(), f, removal(`{"n":2}`))
	for range 2 {
		x.expect("a reason for no] ")
		x.types("y\r")
	}
	wants(t, first, converse.Allow())
	wants(t, second, converse.Allow())
	if shown := x.text(); strings.Count(shown, "wants to call") != 2 {
		t.Errorf("shown is %q", shown)
	}
}

// A question whose context ends takes nothing of what the program reads next.
func TestCancelled(t *testing.T) {
	x := newWindow(t)
	f := approve.OnTerminal(x.inner, x.inner)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	outcome := ask(ctx, f, removal(`{}`))
	x.expect("a reason for no] ")
	cancel(gone)
	if got := <-outcome; !errors.Is(got.err, gone) {
		t.Errorf("%+v", got)
	}
	if _, err := f(ctx, removal(`{}`)); !errors.Is(err, gone) {
		t.Errorf("the next question: %v", err)
	}
	x.types("for the program\r")
	line := make([]byte, 100)
	if n, err := x.inner.Read(line); err != nil || string(line[:n]) != "for the program\n" {
		t.Errorf("the program reads %q, %v", line[:n], err)
	}
}

// Ctrl-C sends its signal also while the question drops what was typed.
func TestCtrlC(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT)
	defer signal.Stop(signals)
	x := newWindow(t)
	fd := int(x.inner.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		t.Fatal(err)
	}
	x.types("\x1b[200~y") // an open paste holds the question up for longer
	ctx, cancel := context.WithCancel(t.Context())
	outcome := ask(ctx, approve.OnTerminal(x.inner, x.inner), removal(`{}`))
	for now := before; reflect.DeepEqual(now, before); runtime.Gosched() { // until it is in raw mode
		if now, err = term.GetState(fd); err != nil {
			t.Fatal(err)
		}
	}
	x.types("\x1b[201~y\x03")
	<-signals
	cancel()
	if got := <-outcome; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
}

func TestWithoutATerminal(t *testing.T) {
	x := newWindow(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	denied := converse.Deny("This call needs approval, but no person can be asked: the program does not run on a terminal.")
	wants(t, ask(t.Context(), approve.OnTerminal(r, x.inner), removal(`{}`)), denied)
	wants(t, ask(t.Context(), approve.OnTerminal(x.inner, w), removal(`{}`)), denied)
	if shown := x.text(); shown != "" {
		t.Errorf("shown is %q", shown)
	}
}

func TestExceptReads(t *testing.T) {
	f := approve.ExceptReads(func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Deny("asked"), nil
	})
	wants(t, ask(t.Context(), f, removal(`{}`)), converse.Deny("asked"))
	claimed := removal(`{}`)
	claimed.Definition.Hints.ReadOnly = true // not believed
	wants(t, ask(t.Context(), f, claimed), converse.Deny("asked"))
	claimed.ReadOnly = true
	wants(t, ask(t.Context(), f, claimed), converse.Allow())
}
