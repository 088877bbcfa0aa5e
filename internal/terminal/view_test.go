// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/redact"
)

// output returns a file, which is not a terminal.
func output(t *testing.T) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// What a person sees of a model that is unavailable is one line.
func TestTheModelIsUnavailable(t *testing.T) {
	notes := output(t)
	v := NewView(NewScreen(output(t), notes))
	defer v.screen.Close()
	moved := converse.ExchangeMoved{Fallback: converse.Fallback{From: "first", To: "second\x1b", Err: errors.New("overloaded")}}
	if err := v.Show(moved); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(notes.Name())
	if want := "  first did not answer, asking second<U+001B>: overloaded\n"; err != nil || string(text) != want {
		t.Errorf("the notes are %q, want %q, %v", text, want, err)
	}
}

// The line of a model says that it thinks, and goes when a tool is at work.
func TestTheModelThinks(t *testing.T) {
	v := NewView(NewScreen(output(t), output(t)))
	defer v.screen.Close()
	for _, e := range []converse.Event{converse.TurnStarted{}, converse.ReasoningDelta{Text: "Hm."}} {
		if err := v.Show(e); err != nil {
			t.Fatal(err)
		}
	}
	if v.waiting == nil || v.waiting.text != "the model is thinking" {
		t.Errorf("the line is %+v", v.waiting)
	}
	if err := v.Show(converse.InvocationStarted{Invocation: canister.Invocation{Head: canister.Head{ID: "i"}, Name: "a"}}); err != nil || v.waiting != nil {
		t.Errorf("while a tool is at work the line is %+v, %v", v.waiting, err)
	}
}

// A secret is redacted before the lines of an answer are broken, which could divide it, and
// when it arrives in several pieces.
func TestAnswersAreRedactedBeforeTheyAreRendered(t *testing.T) {
	const secret = "a-secret-of-many-characters"
	for _, live := range []bool{true, false} {
		stdout := output(t)
		s := NewScreen(stdout, output(t))
		s.Live, s.shared = live, live
		secrets := redact.NewGrowing(secret)
		s.Redact(secrets.Text, secrets.Part)
		v := NewView(s)
		for piece := range strings.SplitSeq(strings.Repeat("x", s.width()-5)+secret+" and\n\n`"+secret+"`", "r") {
			for _, text := range []string{piece, "r"} {
				if err := v.Show(converse.TextDelta{Text: text}); err != nil {
					t.Fatal(err)
				}
				if v.answer == nil {
					continue
				}
				if tail := strings.Join(v.answer.tail(), ""); strings.Contains(tail, "a-sec") {
					t.Fatalf("the line that is not finished is %q", tail)
				}
			}
		}
		if err := v.Show(converse.MessageCompleted{}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		text, err := os.ReadFile(stdout.Name())
		if flat := strings.Join(strings.Fields(string(text)), ""); err != nil || strings.Contains(flat, "characters") || strings.Count(flat, redact.Mark) != 2 {
			t.Errorf("live: %v, the output is %q, %v", live, text, err)
		}
	}
}

// Images of results are drawn by terminals that can, and nowhere else.
func TestImagesOfResults(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"TERM": "xterm-kitty", "TMUX": "", "STY": "", "KITTY_WINDOW_ID": "", "TERM_PROGRAM": ""} {
		t.Setenv(name, value)
	}
	v := NewView(NewScreen(output(t), output(t)))
	defer v.screen.Close()
	done := converse.InvocationCompleted{
		Invocation: canister.Invocation{Name: "plot"},
		Result:     canister.Result{Content: []canister.Content{canister.ImageContent{Data: picture.Bytes(), MIME: "image/png"}}},
	}
	if line := v.outcome(done, nil); strings.Contains(line, "\x1b_G") || !strings.Contains(line, "[image, image/png") {
		t.Errorf("in a file the result is %q", line)
	}
	v.screen.shared = true
	if line := v.outcome(done, nil); !strings.Contains(line, "\x1b_Ga=T") {
		t.Errorf("on a terminal the result is %q", line)
	}
}

// The end of an answer is drawn by another goroutine while the answer streams in.
func TestAnswersAreDrawnWhileTheyStream(t *testing.T) {
	stdout := output(t)
	s := NewScreen(stdout, output(t))
	defer s.Close()
	s.Live = true
	a := newAnswer(s)
	var want strings.Builder
	for i := range 300 {
		line := fmt.Sprintf("- item %d\n", i)
		fmt.Fprintf(&want, "• item %d\n", i)
		a.write(line[:4])
		s.mu.Lock()
		s.redraw()
		s.mu.Unlock()
		a.write(line[4:])
	}
	a.end()
	if text, err := os.ReadFile(stdout.Name()); err != nil || strings.ReplaceAll(string(text), "*", "•") != want.String() {
		t.Errorf("the output is %q, %v", text, err)
	}
}

// Plain lines have one for a search, one for a program, and one for all calls of the program.
func TestFoldedLines(t *testing.T) {
	notes := output(t)
	v := NewView(NewScreen(output(t), notes))
	defer v.screen.Close()
	v.screen.Plain = true
	call := func(id, parent, name string) canister.Invocation {
		return canister.Invocation{Head: canister.Head{ID: id}, Parent: parent, Name: name, Arguments: `{}`}
	}
	var events []converse.Event
	for _, one := range []struct {
		invocation   canister.Invocation
		code, result string
	}{
		{call("f", "", "tools__find_tools"), "", `{"name":"files__read","input_schema":{}}` + "\n"},
		{call("o", "", "others__find_tools"), "", "A hammer."},
		{call("1", "p", "files__read"), "", "text"}, {call("2", "p", "files__read"), "DENIED", "no"}, {call("p", "", "code__run_code"), "", "7"},
	} {
		events = append(events, converse.InvocationStarted{Invocation: one.invocation},
			converse.InvocationCompleted{Invocation: one.invocation, Result: canister.Result{Code: one.code, Content: canister.Texts(one.result)}})
	}
	for _, e := range events {
		if err := v.Show(e); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(notes.Name())
	want := "calling tools__find_tools\ntools__find_tools: done in 0.0 s: 1 found: files__read\n" +
		"calling others__find_tools\nothers__find_tools: done in 0.0 s: A hammer.\n" +
		"calling code__run_code\ncode__run_code: done in 0.0 s: 7\ncode__run_code made 2 calls, 1 failed: files__read 2 times\n"
	if err != nil || string(text) != want {
		t.Errorf("the lines are\n%swant\n%s%v", text, want, err)
	}
}
