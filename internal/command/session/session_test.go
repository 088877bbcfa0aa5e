// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
)

// program returns a program, and a function that returns what it has printed.
func program(t *testing.T) (Program, func() string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	screen := terminal.NewScreen(out, out)
	p := Program{
		Screen: screen, Location: &histories.Location{},
		Renderer: func() terminal.Renderer { return terminal.NewView(screen) }, ShowTrace: func() {},
	}
	return p, func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// open opens the conversation c1 of a store with a model that gives these answers.
func open(t *testing.T, p Program, store history.Store, answers ...string) *Session {
	t.Helper()
	roster, err := ensemble.NewRoster()
	if err != nil {
		t.Fatal(err)
	}
	var lines []conversetest.Line
	for _, text := range answers {
		lines = append(lines, conversetest.Line{Text: text})
	}
	assembly := &config.Assembly{Roster: roster, Options: &converse.Options{}}
	s, err := Options{Store: store, Model: conversetest.NewScript(lines...), Want: histories.Choice{ID: "c1"}}.Open(t.Context(), p, assembly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Conversation.Close(context.WithoutCancel(t.Context())) })
	return s
}

func newStore(t *testing.T) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "talks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// A turn is printed and kept under a title, and the user learns how to continue.
func TestTurn(t *testing.T) {
	p, printed := program(t)
	store := newStore(t)
	s := open(t, p, store, "It is cold.")
	if s.Was.Length != 0 || s.Foreign {
		t.Errorf("a new conversation: %+v", s)
	}
	if err := s.Turn(t.Context(), "Is it cold?"); err != nil {
		t.Fatal(err)
	}
	s.AdviseResume()
	s.AdviseContinue()
	for _, want := range []string{"It is cold.", "consort chat --conversation c1"} {
		if !strings.Contains(printed(), want) {
			t.Errorf("printed %q, without %q", printed(), want)
		}
	}
	if strings.Contains(printed(), "not finished") {
		t.Errorf("printed %q", printed())
	}
	if info, err := store.Info(t.Context(), "c1"); err != nil || info.Title != "Is it cold?" {
		t.Errorf("the title is %q (%v)", info.Title, err)
	}
	if Waits(s.Conversation) {
		t.Error("the model still has something to answer")
	}
}

// A turn that stopped because another process continued or deleted the conversation says so,
// and advises nothing else.
func TestOvertaken(t *testing.T) {
	for length, want := range map[int]string{
		0: "another program deleted this conversation",
		5: "continue with consort chat --conversation c1",
	} {
		p, printed := program(t)
		s := open(t, p, newStore(t), "It is cold.")
		if err := s.Conversation.Add(t.Context(), canister.User{Content: canister.Texts("Is it cold?")}); err != nil {
			t.Fatal(err)
		}
		if err := s.Explain(&history.ConflictError{Length: length}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("explained as %v, want %q", err, want)
		}
		s.AdviseResume()
		if text := printed(); text != "" {
			t.Errorf("printed %q", text)
		}
	}
}

func TestShortfall(t *testing.T) {
	for reason, want := range map[converse.Reason]struct {
		status exit.Status
		text   string
	}{
		converse.ReasonAnswered:      {exit.Done, ""},
		converse.ReasonExchanges:     {exit.Limit, "which is 3 (conversation.exchanges); the answer is the final one"},
		converse.ReasonTime:          {exit.Limit, "(conversation.time)"},
		converse.ReasonLength:        {exit.Limit, "so the answer is cut"},
		converse.ReasonWaiting:       {exit.Waits, ""},
		converse.ReasonContentFilter: {exit.Done, "content filter"},
		converse.ReasonRefusal:       {exit.Done, "declined"},
	} {
		turn := converse.Turn{Reason: reason, Answer: canister.Assistant{Content: canister.Texts("Perhaps.")}}
		err := Shortfall(turn, converse.Limits{Exchanges: 3, FinalAnswer: true})
		if exit.StatusOf(err) != want.status || want.text != "" && (err == nil || !strings.Contains(err.Error(), want.text)) {
			t.Errorf("%s: %v (%d), want %q (%d)", reason, err, exit.StatusOf(err), want.text, want.status)
		}
	}
}

// A message that abandons pending work says so, in a new conversation too.
func TestWarnLeft(t *testing.T) {
	p, printed := program(t)
	s := open(t, p, newStore(t))
	s.WarnLeft()
	if text := printed(); text != "" {
		t.Errorf("nothing is pending, and it prints %q", text)
	}
	call := canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "library__erase"}
	wait := canister.Wait{Head: canister.Head{ID: "w"}, For: canister.WaitApproval, Invocation: "i", Deadline: time.Now().Add(time.Hour)}
	err := s.Conversation.Add(t.Context(), canister.User{Content: canister.Texts("Erase it.")}, canister.Assistant{Head: canister.Head{ID: "a"}}, call)
	if err == nil {
		s.WarnLeft()
		err = s.Conversation.Add(t.Context(), wait)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.WarnLeft()
	for _, want := range []string{"have no result", "was waiting for an answer and continues without it"} {
		if !strings.Contains(printed(), want) {
			t.Errorf("printed %q, without %q", printed(), want)
		}
	}
}
