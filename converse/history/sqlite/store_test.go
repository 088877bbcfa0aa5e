// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
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

func says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// add appends texts to a conversation, which must work.
func add(t testing.TB, s *Store, conversation string, length int, texts ...string) {
	t.Helper()
	var list []canister.Canister
	for i, text := range texts {
		list = append(list, says(fmt.Sprintf("c%d", length+i), text))
	}
	if err := s.Append(t.Context(), conversation, length, list...); err != nil {
		t.Fatal(err)
	}
}

// read returns the lines of a conversation, and the error at their end.
func read(ctx context.Context, s *Store, conversation string, after int) (lines []string, err error) {
	for c, err := range s.Read(ctx, conversation, after) {
		if err != nil {
			return lines, err
		}
		line, err := canister.Marshal(c)
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// texts returns what is said in a conversation.
func texts(t testing.TB, s *Store, conversation string) (list []string) {
	t.Helper()
	for c, err := range s.Read(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, history.TextOf(c))
	}
	return list
}

// find returns the identities of the conversations that a filter lets pass, in
// their order.
func find(t testing.TB, s *Store, filter history.Filter) string {
	t.Helper()
	var ids []string
	for info, err := range s.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
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
	big, small := strings.Repeat("Rain. ", 1000), "Sun."
	list := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts(small, big, small, big, big+"!")},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: []canister.Content{
			canister.ImageContent{Data: []byte(big), MIME: "image/png"}, canister.Text(big), canister.Text(small),
		}},
		canister.Document{Head: canister.Head{ID: "d"}, Title: "Weather", Content: canister.Texts(big)},
		canister.Assistant{Head: canister.Head{ID: "a"}, Content: canister.Texts(small, small)},
		canister.Supervisor{Head: canister.Head{ID: "s"}, Content: canister.Texts(big, small)},
		canister.Invocation{Head: canister.Head{ID: "i"}, Name: "tool", Arguments: strings.Repeat(big, 20)},
	}
	if err := s.Append(t.Context(), "talk", 0, list...); err != nil {
		t.Fatal(err)
	}
	want := make([]string, len(list))
	for i, c := range list {
		line, _ := canister.Marshal(c)
		want[i] = string(line)
	}
	check := func(conversation string, want []string) {
		t.Helper()
		if got, err := read(t.Context(), s, conversation, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", conversation, got, err)
		}
	}
	check("talk", want)
	if n := count(t, s, "contents"); n != 3 {
		t.Errorf("%d long contents, want 3", n)
	}
	if err := s.Fork(t.Context(), "talk", 3, "other"); err != nil {
		t.Fatal(err)
	}
	check("other", want[:3])
	if got := find(t, s, history.Filter{Text: "rain."}); got != "other talk" { // and so both are in the index
		t.Errorf("found %s", got)
	}
	if n := count(t, s, "contents"); n != 3 {
		t.Errorf("%d long contents after a fork, want 3", n)
	}
	if err := s.Delete(t.Context(), "talk", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	check("talk", nil)
	check("other", want[:3])
	if err := s.Delete(t.Context(), "other", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"conversations", "canisters", "contents", "parts", "texts_docsize", "unindexed"} {
		if n := count(t, s, table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

func TestSearch(t *testing.T) {
	s := open(t)
	add(t, s, "rain", 0, "Is it RAINING in Oslo?", "Yes, it is.")
	add(t, s, "sun", 0, "The sun shines in Oslo", `say "AND NOT (x)" NEAR* -col:`, "a\x00b naïve ÄRGER 日本語")
	add(t, s, "long", 0, strings.Repeat("x", 5000)+" hidden "+strings.Repeat("y", 5000))
	add(t, s, "huge", 0, strings.Repeat("Lots of it. ", indexText/10), "Snow, as well.")
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
		if got := find(t, s, history.Filter{Text: text}); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
	if n := count(t, s, "unindexed"); n != 1 {
		t.Errorf("%d conversations have a text that is too long for the index, want 1", n)
	}
	if err := s.Delete(t.Context(), "sun", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	add(t, s, "new", 0, "Bergen")
	for text, want := range map[string]string{"oslo": "rain", "bergen": "new", "shines": ""} {
		if got := find(t, s, history.Filter{Text: text}); got != want {
			t.Errorf("after a deletion, %q finds %q, want %q", text, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	s := open(t)
	var all []string
	for i := range 2*pageRows + 7 {
		all = append(all, fmt.Sprint(i))
	}
	all[5], all[pageRows] = strings.Repeat("x", pageBytes), strings.Repeat("y", pageBytes)
	add(t, s, "talk", 0, all...)
	if got := texts(t, s, "talk"); !slices.Equal(got, all) {
		t.Errorf("%d canisters, want %d", len(got), len(all))
	}
	for _, after := range []int{-1, 1, pageRows, len(all) - 1, len(all), len(all) + 1} {
		want := len(all) - min(max(after, 0), len(all))
		if got, err := read(t.Context(), s, "talk", after); err != nil || len(got) != want {
			t.Errorf("after %d there are %d, want %d; %v", after, len(got), want, err)
		}
	}
}

// What is done in a loop over a conversation does not wait for the loop, and the
// loop does not see it.
func TestALoopIsInNobodysWay(t *testing.T) {
	s := open(t)
	all := slices.Repeat([]string{"x"}, pageRows+1)
	add(t, s, "talk", 0, all...)
	n := 0
	for _, err := range s.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			add(t, s, "talk", len(all), "more")
		}
		n++
	}
	if n != len(all) {
		t.Errorf("%d canisters, want %d", n, len(all))
	}
	var last error
	for _, err := range s.Read(t.Context(), "talk", 0) {
		if last = err; err == nil {
			_ = s.Delete(t.Context(), "talk", history.AnyLength)
		}
	}
	if !errors.Is(last, history.ErrNotFound) {
		t.Errorf("the loop over a deleted conversation ended with %v", last)
	}
	// More loops at a time than there are connections.
	add(t, s, "talk", 0, "x")
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
	if err := open(t).ask(t.Context(), func(w *writer) (verdict, err error) {
		return nil, w.conn.QueryRowContext(always, "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous").Scan(&mode, &level)
	}); err != nil {
		t.Fatal(err)
	}
	if mode != "wal" || level != 2 {
		t.Errorf("the journal mode is %s, and synchronous is %d; want wal and 2, FULL", mode, level)
	}
}
