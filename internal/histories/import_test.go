// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// undescribed cannot store titles, tags and owners.
type undescribed struct{ history.Store }

func (undescribed) Describe(context.Context, string, history.Change) error {
	return errors.New("the disk is full")
}

// managing returns a manager of a store whose results are in the file that it returns.
func managing(t *testing.T, store history.Store) (m *Manager, printed string) {
	t.Helper()
	printed = filepath.Join(t.TempDir(), "stdout")
	out, err := os.Create(printed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	m = &Manager{at: &Location{}, to: Output{Screen: terminal.NewScreen(out, out)}, redact: func(text string) string { return text }}
	m.use(store)
	return m, printed
}

// A conversation whose owner cannot be stored is not imported, and not left without one.
func TestImportWithdraws(t *testing.T) {
	from := filepath.Join(t.TempDir(), "talk.jsonl")
	text := `{"consort_conversation":1,"id":"talk","owner":"client:ada","length":1}
{"kind":"user","id":"u","content":[{"type":"text","text":"Oslo?"}]}
`
	if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := history.NewMemory()
	m, _ := managing(t, undescribed{store})
	if err := m.Import(t.Context(), from, ""); err == nil || !strings.Contains(err.Error(), "the disk is full") || strings.Contains(err.Error(), "may be in the store") {
		t.Errorf("Import: %v", err)
	}
	if info, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("the store has %+v, %v", info, err)
	}
}

// A path that names no file is an error of the command line.
func TestImportOfNoFile(t *testing.T) {
	m, _ := managing(t, history.NewMemory())
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "none")} {
		if err := m.Import(t.Context(), path, ""); exit.StatusOf(err) != exit.Usage || !strings.Contains(err.Error(), path) {
			t.Errorf("Import of %s: %v", path, err)
		}
	}
}

// Conversations of clients move from the user's own store to a named one: the same clients own them there. Those
// of other configurations do not.
func TestImportOfClients(t *testing.T) {
	store := history.NewMemory()
	m, _ := managing(t, store)
	scope, err := (&Location{own: true}).Scope()
	if err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[string]string{"served-" + scope + "d1": "served-d1", "served-0123456789ab-d2": "served-0123456789ab-d2", "served-d3": "served-d3", "ada": "ada"} {
		from := filepath.Join(t.TempDir(), "talk.jsonl")
		text := `{"consort_conversation":1,"id":"` + want + `","owner":"` + owner + `","length":1}
{"kind":"user","id":"u","content":[{"type":"text","text":"Oslo?"}]}
`
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := m.Import(t.Context(), from, ""); err != nil {
			t.Fatal(err)
		}
		if info, err := store.Info(t.Context(), want); err != nil || info.Owner != want {
			t.Errorf("the owner %s is %s, %v, want %s", owner, info.Owner, err, want)
		}
	}
}

// A default title is not exported as a title: import would store it. Documents for people
// have it.
func TestExportHasNoDefaultTitle(t *testing.T) {
	for format, titles := range map[string]int{Lines: 0, "markdown": 1} {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}); err != nil {
			t.Fatal(err)
		}
		m, printed := managing(t, store)
		if err := m.Export(t.Context(), Export{Format: format}, []string{"talk"}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(printed)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n")
		if strings.Count(head, "Oslo?") != titles || !strings.Contains(string(text), "Oslo?") {
			t.Errorf("%s: %s", format, text)
		}
	}
}
