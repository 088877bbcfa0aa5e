// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/readable"
)

// pruned deletes the conversation "old" when its Info was asked for some times.
type pruned struct {
	history.Store
	left *int // the calls of Info that find it
}

func (s pruned) Info(ctx context.Context, id string) (history.Info, error) {
	if id == "old" {
		if *s.left--; *s.left < 0 {
			if err := s.Delete(ctx, id, history.AnyLength); err != nil {
				return history.Info{}, err
			}
		}
	}
	return s.Store.Info(ctx, id)
}

// A conversation that is deleted during an export is left out, and the others are exported. It is reported if it
// was named. Without another one there is no file.
func TestExportDuringDeletion(t *testing.T) {
	for _, format := range []string{Lines, string(readable.Markdown), string(readable.HTML)} {
		for _, test := range []struct {
			tags    []string // of those that are exported
			ids     []string // none means all with the tags
			found   int      // how often
			written bool
			want    exit.Status
		}{
			{nil, nil, 0, true, exit.Done},
			{nil, nil, 1, true, exit.Done},
			{[]string{"late"}, nil, 0, false, exit.Usage},
			{[]string{"late"}, nil, 1, false, exit.Usage},
			{nil, []string{"old", "one", "two"}, 1, true, exit.Failed},
			{nil, []string{"old"}, 1, false, exit.Failed},
		} {
			name := fmt.Sprintf("%s, %v %v, found %d times", format, test.tags, test.ids, test.found)
			store := history.NewMemory()
			for _, id := range []string{"one", "old", "two"} {
				if err := store.Append(t.Context(), id, 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("this is " + id)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Describe(t.Context(), "old", history.Change{Tags: &[]string{"late"}}); err != nil {
				t.Fatal(err)
			}
			m, _ := managing(t, pruned{store, &test.found})
			path := filepath.Join(t.TempDir(), "out")
			err := m.Export(t.Context(), Export{All: test.ids == nil && test.tags == nil, Tags: test.tags, Format: format, To: path}, test.ids)
			names := map[exit.Status]string{exit.Failed: `"old"`, exit.Usage: "no conversation matches"}[test.want]
			if exit.StatusOf(err) != test.want || err != nil && !strings.Contains(err.Error(), names) {
				t.Errorf("%s: %v", name, err)
			}
			text, err := os.ReadFile(path)
			if isThere := err == nil; isThere != test.written {
				t.Errorf("%s: there is a file: %v", name, isThere)
			}
			if format == string(readable.HTML) && test.written && !strings.Contains(string(text), "<title>Conversations</title>") {
				t.Errorf("%s: the title counts what was deleted", name)
			}
			for id, want := range map[string]bool{"one": test.written, "two": test.written, "old": false} {
				if strings.Contains(string(text), "this is "+id) != want {
					t.Errorf("%s: %s is exported: %v", name, id, !want)
				}
			}
		}
	}
}

// short yields no canister of a conversation that is there.
type short struct{ history.Store }

func (s short) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	if id == "old" {
		return func(func(canister.Canister, error) bool) {}
	}
	return s.Store.Read(ctx, id, after)
}

// A conversation that is there, but cannot be read to its end, is reported also if the export chooses it.
func TestExportOfShortConversation(t *testing.T) {
	store := history.NewMemory()
	for _, id := range []string{"one", "old"} {
		if err := store.Append(t.Context(), id, 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("this is " + id)}); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := managing(t, short{store})
	path := filepath.Join(t.TempDir(), "out")
	err := m.Export(t.Context(), Export{All: true, Format: Lines, To: path}, nil)
	if exit.StatusOf(err) != exit.Failed || !strings.Contains(err.Error(), "old is omitted") {
		t.Errorf("it returns %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "this is one") {
		t.Errorf("the other one: %s %v", text, err)
	}
}
