// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

const day = 24 * time.Hour

// aged fills a store with new conversations whose names describe their properties.
func aged(t *testing.T, store history.Store) {
	t.Helper()
	for _, c := range []struct {
		id, tag, owner string
		open           bool
	}{
		{id: "old"}, {id: "legal", tag: "legal"}, {id: "ann", owner: "ann"}, {id: "guest", owner: "guest"},
		{id: "guest-legal", tag: "legal", owner: "guest"}, {id: "open", open: true},
	} {
		said := []canister.Canister{says("u", "hi"), canister.Assistant{Head: canister.Head{ID: "a"}}}
		if c.open {
			said = said[:1]
		}
		if err := store.Append(t.Context(), c.id, 0, said...); err != nil {
			t.Fatal(err)
		}
		tags := []string{"any"}
		if c.tag != "" {
			tags = append(tags, c.tag)
		}
		if err := store.Describe(t.Context(), c.id, history.Change{Tags: &tags, Owner: &c.owner}); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, sequence iter.Seq2[history.Info, error]) string {
	t.Helper()
	var ids []string
	for info, err := range sequence {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func TestRetentionApply(t *testing.T) {
	rules := []history.RetentionRule{{Tag: "legal"}, {Owner: "guest", Keep: day}, {Owner: "ann", Keep: 90 * day}}
	for name, test := range map[string]struct {
		retention history.Retention
		days      int
		want      string
	}{
		"nothing goes by itself":  {history.Retention{}, 10_000, ""},
		"young":                   {history.Retention{Keep: 30 * day}, 30, ""},
		"old":                     {history.Retention{Keep: 30 * day}, 31, "ann guest guest-legal legal old"},
		"and open":                {history.Retention{Keep: 30 * day, ExpireOpen: true}, 31, "ann guest guest-legal legal old open"},
		"rules":                   {history.Retention{Keep: 30 * day, Rules: rules}, 31, "guest old"},
		"a shorter rule":          {history.Retention{Keep: 30 * day, Rules: rules}, 2, "guest"},
		"a longer rule":           {history.Retention{Keep: 30 * day, Rules: rules}, 91, "ann guest old"},
		"rules alone":             {history.Retention{Rules: rules}, 91, "ann guest"},
		"the first rule counts":   {history.Retention{Rules: []history.RetentionRule{{Keep: 9 * day}, {Keep: day}}}, 2, ""},
		"both of a rule must fit": {history.Retention{Rules: []history.RetentionRule{{Tag: "legal", Owner: "guest", Keep: day}}}, 2, "guest-legal"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := history.NewMemory()
			aged(t, store)
			time.Sleep(time.Duration(test.days) * day)
			all := names(t, store.List(t.Context(), history.Filter{}))
			if got := names(t, test.retention.Expired(t.Context(), store, time.Now())); got != test.want {
				t.Errorf("%s: %q are expired, want %q", name, got, test.want)
			}
			if got := names(t, store.List(t.Context(), history.Filter{})); got != all {
				t.Errorf("%s: looking left %q", name, got)
			}
			if got := names(t, test.retention.Apply(t.Context(), store, time.Now())); got != test.want {
				t.Errorf("%s: %q are gone, want %q", name, got, test.want)
			}
			left := names(t, store.List(t.Context(), history.Filter{}))
			both := strings.Fields(left + " " + test.want)
			slices.Sort(both)
			if strings.Join(both, " ") != all {
				t.Errorf("%s: %q are left", name, left)
			}
		})
	}
}

// fickle is a store that changes before each read.
type fickle struct {
	history.Store
	before func(id string)
	broken map[string]error
}

func (f fickle) Info(ctx context.Context, id string) (history.Info, error) {
	f.before(id)
	return f.Store.Info(ctx, id)
}

func (f fickle) Delete(ctx context.Context, id string, length int) error {
	if err := f.broken[id]; err != nil {
		return err
	}
	return f.Store.Delete(ctx, id, length)
}

// TestRetainLooksAgain: conversations that were changed or deleted since the list was
// made are skipped, and one that cannot be deleted does not keep the others.
func TestRetainLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		aged(t, store)
		time.Sleep(31 * day)
		full := errors.New("the disk is read-only")
		f := fickle{store, func(id string) {
			switch id {
			case "old":
				if err := store.Append(t.Context(), id, 2, says("v", "still there"), canister.Assistant{Head: canister.Head{ID: "b"}}); err != nil {
					t.Error(err)
				}
			case "ann":
				if err := store.Delete(t.Context(), id, history.AnyLength); err != nil {
					t.Error(err)
				}
			}
		}, map[string]error{"legal": full}}
		var gone []string
		var failed error
		for info, err := range (history.Retention{Keep: 30 * day}).Apply(t.Context(), f, time.Now()) {
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			gone = append(gone, info.ID)
		}
		slices.Sort(gone)
		if strings.Join(gone, " ") != "guest guest-legal" || !errors.Is(failed, full) || !strings.Contains(failed.Error(), `"legal" was not deleted`) {
			t.Errorf("%q, %v", gone, failed)
		}
		if left := names(t, store.List(t.Context(), history.Filter{})); left != "legal old open" {
			t.Errorf("left: %q", left)
		}
	})
}

// late is a store in which another writer appends between the last check and the
// deletion.
type late struct {
	history.Store
	before func(id string)
}

func (l late) Delete(ctx context.Context, id string, length int) error {
	l.before(id)
	return l.Store.Delete(ctx, id, length)
}

// TestRetainLosesNoMessage: a message that comes in the moment of the deletion stays,
// and with it all that came before; whoever comes later is told.
func TestRetainLosesNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		aged(t, store)
		time.Sleep(31 * day)
		l := late{store, func(id string) {
			if id == "old" {
				if err := store.Append(t.Context(), id, 2, says("v", "just in time")); err != nil {
					t.Error(err)
				}
			}
		}}
		if gone := names(t, (history.Retention{Keep: 30 * day}).Apply(t.Context(), l, time.Now())); gone != "ann guest guest-legal legal" {
			t.Errorf("%q are gone", gone)
		}
		info, err := store.Info(t.Context(), "old")
		if err != nil || info.Length != 3 {
			t.Errorf("the conversation with the message is %+v, %v", info, err)
		}
		err = store.Append(t.Context(), "ann", 2, says("v", "too late"))
		if conflict, ok := errors.AsType[*history.ConflictError](err); !ok || conflict.Length != 0 {
			t.Errorf("a message for a conversation that is gone: %v", err)
		}
	})
}

// TestRetainSaysThatItStopped: if the context ends during a deletion that succeeds, the last pair has
// its error.
func TestRetainSaysThatItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		aged(t, store)
		time.Sleep(31 * day)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stopping := ending{store, cancel}
		gone, failed := 0, error(nil)
		for info, err := range (history.Retention{Keep: day}).Apply(ctx, stopping, time.Now()) {
			switch {
			case failed != nil:
				t.Errorf("after the error of the context come %+v, %v", info, err)
			case err == nil:
				gone++
			}
			failed = err
		}
		if gone != 1 || !errors.Is(failed, context.Canceled) {
			t.Errorf("%d conversations are gone, and the last error is %v", gone, failed)
		}
	})
}

// ending is a store whose deletions end a context.
type ending struct {
	history.Store
	end func()
}

func (e ending) Delete(ctx context.Context, id string, length int) error {
	defer e.end()
	return e.Store.Delete(ctx, id, length)
}

// TestRetainEnds: a loop that is left, or whose context ends, deletes no more.
func TestRetainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		aged(t, store)
		time.Sleep(31 * day)
		for range (history.Retention{Keep: day}).Apply(t.Context(), store, time.Now()) {
			break
		}
		if left := strings.Fields(names(t, store.List(t.Context(), history.Filter{}))); len(left) != 5 {
			t.Errorf("left: %q", left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range (history.Retention{Keep: day}).Apply(ctx, store, time.Now()) {
			cancel()
		}
		if left := strings.Fields(names(t, store.List(t.Context(), history.Filter{}))); len(left) != 4 {
			t.Errorf("left: %q", left)
		}
	})
}

// clocked is a store with a clock of its own, within another store.
type clocked struct {
	history.Store
	late time.Duration
}

func (c clocked) Now(context.Context) (time.Time, error) { return time.Now().Add(-c.late), nil }

type wrapped struct{ history.Store }

func (w wrapped) Unwrap() history.Store { return w.Store }

// A machine whose clock is fast deletes nothing that has not expired by the clock of the store.
func TestRetentionWithAFastClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for late, want := range map[time.Duration]string{time.Hour: "a", 50 * 24 * time.Hour: "", -time.Hour: "a"} {
			store := history.NewMemory()
			if err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")}, canister.Assistant{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * 24 * time.Hour)
			keep := history.Retention{Keep: 30 * 24 * time.Hour}
			there := wrapped{clocked{store, late}}
			if got := names(t, keep.Expired(t.Context(), there, time.Now())); got != want {
				t.Errorf("%v late: expired are %q, want %q", late, got, want)
			}
			if got := names(t, keep.Apply(t.Context(), there, time.Now())); got != want {
				t.Errorf("%v late: deleted are %q, want %q", late, got, want)
			}
		}
	})
}
