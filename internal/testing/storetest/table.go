// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// LongContents checks that long contents are stored once in the table contents, are read
// back in their places, and are deleted with the last conversation that has them. Then
// all of the tables must be empty; count returns the number of rows of one.
func LongContents(t *testing.T, s history.Store, count func(table string) int, tables ...string) {
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
	want := make([]string, len(list))
	for i, c := range list {
		line, _ := canister.Marshal(c)
		want[i] = string(line)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	holds := func(conversation string, want []string, contents int) {
		t.Helper()
		if got, err := Read(t.Context(), s, conversation, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", conversation, got, err)
		}
		if n := count("contents"); n != contents {
			t.Errorf("with %s there are %d long contents, want %d", conversation, n, contents)
		}
	}
	must(s.Append(t.Context(), "talk", 0, list...))
	holds("talk", want, 3)
	must(s.Fork(t.Context(), "talk", 3, "other"))
	holds("other", want[:3], 3)
	if got := Find(t, s, history.Filter{Text: "rain."}); got != "other talk" { // so the search index covers both
		t.Errorf("found %s", got)
	}
	must(s.Delete(t.Context(), "talk", len(list)))
	holds("talk", nil, 3)
	holds("other", want[:3], 3)
	must(s.Delete(t.Context(), "other", 3))
	for _, table := range tables {
		if n := count(table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// Pages checks that a conversation is read completely, from any place on, if its rows
// come in pages. A page ends after the given number of rows, or when it has the given
// number of bytes.
func Pages(t *testing.T, s history.Store, rows, bytes int) {
	var all []string
	for i := range 2*rows + 7 {
		all = append(all, fmt.Sprint(i))
	}
	all[5], all[6], all[rows] = strings.Repeat("x", bytes), strings.Repeat("z", 2000), strings.Repeat("y", bytes)
	Add(t, s, "talk", 0, all...)
	if got := Texts(t, s, "talk"); !slices.Equal(got, all) {
		t.Errorf("%d canisters, want %d", len(got), len(all))
	}
	for _, after := range []int{-1, 1, rows, len(all) - 1, len(all), len(all) + 1} {
		want := len(all) - min(max(after, 0), len(all))
		if got, err := Read(t.Context(), s, "talk", after); err != nil || len(got) != want {
			t.Errorf("after %d there are %d, want %d; %v", after, len(got), want, err)
		}
	}
}

// Loop checks reads of a conversation with more than a page of rows. A write inside the
// loop must not block on the loop, and the loop must not see it, unless the write deletes
// the conversation.
func Loop(t *testing.T, s history.Store, rows int) {
	all := slices.Repeat([]string{"x"}, rows+1)
	Add(t, s, "talk", 0, all...)
	n := 0
	for _, err := range s.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			Add(t, s, "talk", len(all), "more")
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
}
