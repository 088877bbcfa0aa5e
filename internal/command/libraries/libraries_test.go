// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// What servers do not have is a failure of the command, and lists say that there is nothing.
func TestServersWithoutResources(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	roster, err := ensemble.NewRoster(ensemble.Local("files", ensembletest.Returns("read", "text")))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.WithoutCancel(t.Context()))
	l := Library{Roster: roster, Screen: terminal.NewScreen(out, out)}
	for _, show := range []func() error{
		func() error { return l.ShowResource(t.Context(), "note:///welcome") },
		func() error { return l.ShowPrompt(t.Context(), "files__greet", nil) },
	} {
		if err := show(); exit.StatusOf(err) != exit.Tool || !strings.HasPrefix(err.Error(), "NOT_FOUND: ") {
			t.Errorf("%v, want NOT_FOUND", err)
		}
	}
	for _, list := range []func(context.Context) error{l.ListResources, l.ListPrompts} {
		if err := list(t.Context()); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(out.Name())
	if err != nil || !strings.Contains(string(text), "resource") || !strings.Contains(string(text), "prompt") {
		t.Errorf("printed %q (%v)", text, err)
	}
}
