// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// open returns a store in a new file.
func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "talks.db"), nil)
}

func openAt(t testing.TB, path string, options *Options) *Store {
	t.Helper()
	s, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// count returns how many rows a table has.
func count(t testing.TB, s *Store, table string) (n int) {
	t.Helper()
	if err := s.read.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLongContentsStandOnce(t *testing.T) {
	s := open(t)
	storetest.LongContents(t, s, func(table string) int { return count(t, s, table) }, "conversations", "canisters", "contents",
		"parts", "texts_docsize", "unindexed")
}

func TestSearch(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "rain", 0, "Is it RAINING in Oslo?", "Yes, it is.")
	storetest.Add(t, s, "sun", 0, "The sun shines in Oslo", `say "AND NOT (x)" NEAR* -col:`, "a\x00b naïve ÄRGER 日本語")
	storetest.Add(t, s, "long", 0, strings.Repeat("x", 5000)+" hidden "+strings.Repeat("y", 5000))
	storetest.Add(t, s, "huge", 0, strings.Repeat("Lots of it. ", indexText/10), "Snow, as well.")
	title := "On Weather"
	if err := s.Describe(t.Context(), "rain", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                       "huge long rain sun",
		"oslo":                   "rain sun",
		"OSLO yes":               "rain",
		"yes raining WEATHER on": "rain",
		"yes shines":             "",
		"hidden":                 "long",
		"lots":                   "huge",
		"lots snow":              "huge",
		"lots hail":              "",
		"snow":                   "huge",
		"ain":                    "rain",
		"it":                     "huge rain",
		"x)":                     "sun",
		`"AND`:                   "sun",
		`"`:                      "sun",
		"near* -col:":            "sun",
		"AND OR NOT":             "",
		"oslo*":                  "",
		"rain^2":                 "",
		`text:oslo`:              "",
		`{text}:oslo`:            "",
		"a\x00b":                 "sun",
		"ärger":                  "sun",
		"naive":                  "",
		"日本語":                    "sun",
		"本":                      "sun",
		"'; DROP TABLE texts":    "",
	} {
		if got := storetest.Find(t, s, history.Filter{Text: text}); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
	if n := count(t, s, "unindexed"); n != 1 {
		t.Errorf("%d conversations have a text that is too long for the index, want 1", n)
	}
	if err := s.Delete(t.Context(), "sun", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, "new", 0, "Bergen")
	for text, want := range map[string]string{"oslo": "rain", "bergen": "new", "shines": ""} {
		if got := storetest.Find(t, s, history.Filter{Text: text}); got != want {
			t.Errorf("after a deletion, %q finds %q, want %q", text, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	s := open(t)
	storetest.Pages(t, s, sqlstore.PageRows, sqlstore.PageBytes)
	from, err := s.common.Extent(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	// A page ends with the canister that reaches its limit of bytes.
	if page, err := s.common.DB.Page(t.Context(), sqlstore.Want{Extent: from, To: from.Length, Bytes: sqlstore.PageBytes}); err != nil || len(page) != 6 {
		t.Errorf("a page of %d rows, want 6; %v", len(page), err)
	}
}

// What is done in a loop over a conversation does not wait for the loop, and the
// loop does not see it.
func TestALoopIsInNobodysWay(t *testing.T) {
	s := open(t)
	storetest.Loop(t, s, sqlstore.PageRows)
	// More loops at a time than there are connections.
	storetest.Add(t, s, "talk", 0, "x")
	var nest func(depth int)
	nest = func(depth int) {
		for _, err := range s.Read(t.Context(), "talk", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if depth > 0 {
				nest(depth - 1)
			}
		}
	}
	nest(2 * readers)
}

// What was acknowledged survives the loss of power, which no test can cause.
func TestHowTheFileIsWritten(t *testing.T) {
	var mode string
	var level int
	if err := open(t).submit(t.Context(), func(w *writer) (verdict, err error) {
		return nil, w.conn.QueryRowContext(background, "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous").Scan(&mode, &level)
	}); err != nil {
		t.Fatal(err)
	}
	if mode != "wal" || level != 2 {
		t.Errorf("the journal mode is %s, and synchronous is %d; want wal and 2, FULL", mode, level)
	}
}
