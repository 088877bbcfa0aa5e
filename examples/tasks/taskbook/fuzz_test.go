// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/invoker"
)

// For every title that is sent, the stored title follows the rule and equals the sent
// one, and a refusal is about the argument.
func FuzzTitles(f *testing.F) {
	for _, title := range []string{"Buy milk", " x ", "", "\u200b", "e\u0301", "a\x00b", "\xff", `"\ud800"`, strings.Repeat("🦉", 501)} {
		f.Add(title)
	}
	book, _ := open(f)
	tools := newKit(f, book)
	f.Fuzz(func(t *testing.T, title string) {
		text, err := json.Marshal(map[string]string{"title": title})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tools.call(t, 1, "add_task", string(text))
		if err != nil {
			if failure := invoker.AsFailure(err); failure.Code != invoker.InvalidArguments || failure.Pointer != "/title" {
				t.Errorf("%q: %v", title, err)
			}
			return
		}
		var one One
		if err := json.Unmarshal([]byte(got), &one); err != nil {
			t.Fatal(err)
		}
		kept := one.Task.Title
		if n := utf8.RuneCountInString(kept); n < 1 || n > MaxTitle || strings.TrimSpace(kept) != kept {
			t.Errorf("%q became %q", title, kept)
		}
		if sent := strings.TrimSpace(strings.ToValidUTF8(title, "\ufffd")); utf8.ValidString(title) && kept != sent {
			t.Errorf("%q became %q", title, kept)
		}
		if page, err := book.ListTasks(as(t, 1), Filter{After: one.Task.ID - 1}); err != nil || page.Tasks[0] != one.Task {
			t.Errorf("listed %+v, %v", page, err)
		}
	})
}
