// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
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
			ids     []string // none means all
			found   int      // how often
			written bool
			want    exit.Status
		}{
			{nil, 0, true, exit.Done},
			{nil, 1, true, exit.Done},
			{[]string{"old", "one", "two"}, 1, true, exit.Failed},
			{[]string{"old"}, 1, false, exit.Failed},
		} {
			name := fmt.Sprintf("%s, %v, found %d times", format, test.ids, test.found)
			store := history.NewMemory()
			for _, id := range []string{"one", "old", "two"} {
				if err := store.Append(t.Context(), id, 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("this is " + id)}); err != nil {
					t.Fatal(err)
				}
			}
			m, _ := managing(t, pruned{store, &test.found})
			path := filepath.Join(t.TempDir(), "out")
			err := m.Export(t.Context(), Export{All: test.ids == nil, Format: format, To: path}, test.ids)
			if exit.StatusOf(err) != test.want || err != nil && !strings.Contains(err.Error(), `"old"`) {
				t.Errorf("%s: %v", name, err)
			}
			text, err := os.ReadFile(path)
			if isThere := err == nil; isThere != test.written {
				t.Errorf("%s: there is a file: %v", name, isThere)
			}
			for id, want := range map[string]bool{"one": test.written, "two": test.written, "old": false} {
				if strings.Contains(string(text), "this is "+id) != want {
					t.Errorf("%s: %s is exported: %v", name, id, !want)
				}
			}
		}
	}
}
