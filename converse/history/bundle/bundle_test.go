// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/transcript"
)

// hostile is a text that tries to be more than text.
const hostile = "<script>alert(1)</script>\n```\n# owned\n[x](javascript:alert(1)) ![i](http://evil.example/p.png)\n" +
	"````\x1b]0;owned\a\u009b2J\u202e</pre></title>"

// conversations are possible results of a loop: a finished one with every kind of
// canister, and one that waits.
func conversations() map[string][]canister.Canister {
	deadline := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	call := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u", Time: deadline.Add(-time.Hour)}, Content: canister.Texts("Oslo? " + hostile)},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "atlas__weather", Arguments: `{"city":"<b>Oslo"}`},
		canister.Wait{
			Head: canister.Head{ID: "w"}, For: canister.WaitApproval, Invocation: "i", Deadline: deadline, Conversation: "talk",
			Arguments: `{"city":"<b>Oslo"}`,
		},
	}
	return map[string][]canister.Canister{
		"waits": call,
		"talk": append(slices.Clone(call),
			canister.Answer{Head: canister.Head{ID: "a"}, Wait: "w", Verdict: canister.VerdictAllow, By: "ann", Reason: hostile},
			canister.Intent{Head: canister.Head{ID: "n"}, Invocation: "i", Attempt: 1, Key: "k", Wait: "w"},
			canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Code: "EXECUTION_FAILED", Content: []canister.Content{
				canister.TextContent{Text: hostile}, canister.ImageContent{MIME: "image/png", Data: []byte{1, 2}},
			}},
			canister.Assistant{Head: canister.Head{ID: "e"}, Content: canister.Texts("It snows.")},
		),
	}
}

// filled puts them into a store, with a title, tags and an owner.
func filled(t *testing.T, store history.Store) history.Store {
	t.Helper()
	for id, canisters := range conversations() {
		if err := store.Append(t.Context(), id, 0, canisters...); err != nil {
			t.Fatal(err)
		}
	}
	title, tags, owner := "About "+hostile, []string{"travel", "winter"}, "ann"
	if err := store.Describe(t.Context(), "talk", history.Change{Title: &title, Tags: &tags, Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	return store
}

func exported(t *testing.T, store history.Store, ids ...string) string {
	t.Helper()
	var b strings.Builder
	if err := bundle.Export(t.Context(), &b, store, ids...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// taken are the IDs that an import yields, and its errors.
func taken(sequence iter.Seq2[history.Info, error]) (ids []string, errs error) {
	for info, err := range sequence {
		if err == nil {
			ids = append(ids, info.ID)
		}
		errs = errors.Join(errs, err)
	}
	return ids, errs
}

func canisters(t *testing.T, store history.Store, id string) []canister.Canister {
	t.Helper()
	var all []canister.Canister
	for c, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestRoundTrip: export from each kind of store and import into each keeps the
// conversation equal.
func TestRoundTrip(t *testing.T) {
	stores := map[string]func() history.Store{
		"memory": func() history.Store { return history.NewMemory() },
		"sqlite": func() history.Store { return opened(t)(sqlite.Open(filepath.Join(t.TempDir(), "h.db"), nil)) },
		"files":  func() history.Store { return opened2(t)(files.Open(filepath.Join(t.TempDir(), "h"), nil)) },
	}
	for from, newFrom := range stores {
		text := exported(t, filled(t, newFrom()), "waits", "talk")
		for to, newTo := range stores {
			store := newTo()
			if ids, err := taken(bundle.Import(t.Context(), store, strings.NewReader(text), nil)); err != nil || !slices.Equal(ids, []string{"waits", "talk"}) {
				t.Fatalf("%s to %s: %q, %v", from, to, ids, err)
			}
			for id, want := range conversations() {
				if got := canisters(t, store, id); !reflect.DeepEqual(got, want) {
					t.Errorf("%s to %s: %s is\n%v\nwant\n%v", from, to, id, got, want)
				}
			}
			info, err := store.Info(t.Context(), "talk")
			if err != nil || info.Title != "About "+hostile || info.Owner != "ann" || !slices.Equal(info.Tags, []string{"travel", "winter"}) {
				t.Errorf("%s to %s: %+v, %v", from, to, info, err)
			}
		}
	}
}

func opened(t *testing.T) func(*sqlite.Store, error) history.Store {
	return func(store *sqlite.Store, err error) history.Store {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
}

func opened2(t *testing.T) func(*files.Store, error) history.Store {
	return func(store *files.Store, err error) history.Store {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
}

// TestImportLeavesWhatIsThere: a conversation that exists stays as it is, and the
// others are taken up.
func TestImportLeavesWhatIsThere(t *testing.T) {
	text := exported(t, filled(t, history.NewMemory()), "waits", "talk")
	store := history.NewMemory()
	mine := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("mine")}
	if err := store.Append(t.Context(), "waits", 0, mine); err != nil {
		t.Fatal(err)
	}
	ids, err := taken(bundle.Import(t.Context(), store, strings.NewReader(text), nil))
	if !slices.Equal(ids, []string{"talk"}) || !errors.Is(err, history.ErrExists) || !strings.Contains(err.Error(), `"waits"`) {
		t.Errorf("%q, %v", ids, err)
	}
	if got := canisters(t, store, "waits"); !reflect.DeepEqual(got, []canister.Canister{mine}) {
		t.Errorf("%v", got)
	}
	ids, err = taken(bundle.Import(t.Context(), store, strings.NewReader(text), &bundle.ImportOptions{ID: func(was string) string { return was + "-2" }}))
	if err != nil || !slices.Equal(ids, []string{"waits-2", "talk-2"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

// TestImportOfWhatIsNone: each is an *Error that names the line, and what stood
// before it is there.
func TestImportOfWhatIsNone(t *testing.T) {
	source := filled(t, history.NewMemory())
	first, second := exported(t, source, "waits"), exported(t, source, "talk")
	lines := strings.SplitAfter(second, "\n")
	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"empty":       {"", 1, "does not begin a conversation"},
		"blank":       {"\n \n", 1, "does not begin a conversation"},
		"other":       {"{}\n", 1, "does not begin a conversation"},
		"no head":     {lines[1], 1, "does not begin a conversation"},
		"newer":       {first + strings.Replace(second, `tion":1`, `tion":2`, 1), 6, "newer program"},
		"cut off":     {first + strings.Join(lines[:4], ""), 6, "has 3 canisters, but this line says 8"},
		"in a line":   {first + second[:len(second)-20], 14, "unexpected end"},
		"no history":  {first + strings.Replace(second, lines[2], "", 1) + lines[2], 6, "not a valid history"},
		"no identity": {first + strings.Replace(second, `"id":"talk"`, `"id":""`, 1), 6, "the ID of"},
		"bad tag":     {first + strings.Replace(second, `"travel"`, `"tr\u0000avel"`, 1), 6, "NUL"},
		"a long line": {first + strings.Repeat(" ", canister.MaxLine+9) + "\n", 6, "longer than"},
	} {
		store := history.NewMemory()
		_, err := taken(bundle.Import(t.Context(), store, strings.NewReader(test.text), nil))
		wrong, ok := errors.AsType[*bundle.Error](err)
		if !ok || wrong.Line != test.line || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := store.Info(t.Context(), "waits"); (err == nil) != strings.HasPrefix(test.text, first) {
			t.Errorf("%s: what stood before it: %v", name, err)
		}
		if _, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("%s: there is a part of it: %v", name, err)
		}
	}
}

// TestExportSaysWhatItCannot: an unknown conversation, and a writer that fails.
func TestExportSaysWhatItCannot(t *testing.T) {
	store := filled(t, history.NewMemory())
	var b strings.Builder
	if err := bundle.Export(t.Context(), &b, store, "waits", "none"); !errors.Is(err, history.ErrNotFound) ||
		!strings.Contains(err.Error(), `"none"`) {
		t.Errorf("%v", err)
	}
	if b.String() != exported(t, store, "waits") {
		t.Errorf("what stood before it: %s", &b)
	}
	full := errors.New("the disk is full")
	if err := bundle.Export(t.Context(), failing{full}, store, "talk"); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := bundle.Export(ended, &b, store, "talk"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestCanistersAreThoseOfTheInfo: later canisters are ignored, and missing ones are an
// error.
func TestCanistersAreThoseOfTheInfo(t *testing.T) {
	store := filled(t, history.NewMemory())
	info, err := store.Info(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	count := func(info history.Info) (n int, err error) {
		for c, problem := range transcript.Canisters(t.Context(), store, info) {
			if err = problem; err == nil {
				if n++; c.Number != n {
					t.Errorf("place %d is %d", n, c.Number)
				}
			}
		}
		return n, err
	}
	shorter := info
	shorter.Length = 3
	if n, err := count(shorter); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := store.Delete(t.Context(), "talk", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	if _, err := count(info); err == nil || !strings.Contains(err.Error(), "had 8 canisters, but only 0") {
		t.Errorf("%v", err)
	}
}

// FuzzImport: every input is imported as a history or refused with an error, and an
// imported history can be exported and imported again.
func FuzzImport(f *testing.F) {
	store := history.NewMemory()
	for id, canisters := range conversations() {
		if err := store.Append(f.Context(), id, 0, canisters...); err != nil {
			f.Fatal(err)
		}
	}
	var b strings.Builder
	if err := bundle.Export(f.Context(), &b, store, "talk", "waits"); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add("")
	f.Add(`{"consort_conversation":9}`)
	f.Fuzz(func(t *testing.T, text string) {
		store := history.NewMemory()
		ids, _ := taken(bundle.Import(t.Context(), store, strings.NewReader(text), nil))
		if len(ids) == 0 {
			return
		}
		again := history.NewMemory()
		if _, err := taken(bundle.Import(t.Context(), again, strings.NewReader(exported(t, store, ids...)), nil)); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			_, was, _ := strings.Cut(exported(t, store, id), "\n")
			if _, is, _ := strings.Cut(exported(t, again, id), "\n"); was != is {
				t.Errorf("it was\n%s\nand is\n%s", was, is)
			}
		}
	})
}

// A fork at 0 has no canisters, and is not in the way of the others.
func TestImportPassesOverEmpty(t *testing.T) {
	store := filled(t, history.NewMemory())
	if err := store.Fork(t.Context(), "talk", 0, "empty"); err != nil {
		t.Fatal(err)
	}
	text := exported(t, store, "empty", "talk")
	ids, err := taken(bundle.Import(t.Context(), history.NewMemory(), strings.NewReader(text), nil))
	if err != nil || !slices.Equal(ids, []string{"talk"}) {
		t.Errorf("taken up: %q, %v", ids, err)
	}
}

// undescribed takes no titles.
type undescribed struct{ history.Store }

func (undescribed) Describe(context.Context, string, history.Change) error {
	return errors.New("the disk is full")
}

// Without its title and its owner a conversation is not there.
func TestImportIsWhole(t *testing.T) {
	text := exported(t, filled(t, history.NewMemory()), "talk")
	store := history.NewMemory()
	if ids, err := taken(bundle.Import(t.Context(), undescribed{store}, strings.NewReader(text), nil)); err == nil || len(ids) > 0 {
		t.Errorf("taken up: %q, %v", ids, err)
	}
	if info, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("it is there: %+v, %v", info, err)
	}
}

// unsure is a store whose first append takes effect, or not, and then says that it does not know.
type unsure struct {
	history.Store
	appends bool
	failed  bool
	after   func(id string, canisters []canister.Canister) // runs after it
	late    func()                                         // runs before the second append
}

var errUnsure = errors.New("the connection was lost")

func (u *unsure) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if u.failed {
		if u.late != nil {
			u.late()
		}
		return u.Store.Append(ctx, id, length, canisters...)
	}
	u.failed = true
	var err error
	if u.appends {
		err = u.Store.Append(ctx, id, length, canisters...)
	}
	u.after(id, canisters)
	return errors.Join(err, errUnsure)
}

// An import whose outcome is unknown leaves nothing, or says what it may have left. It deletes
// nothing that may be the work of another.
func TestImportOfUnknownOutcome(t *testing.T) {
	described := exported(t, filled(t, history.NewMemory()), "talk")
	blank := exported(t, filled(t, history.NewMemory()), "waits")
	for name, try := range map[string]struct {
		id, text string
		appends  bool
		also     func(*testing.T, history.Store, []canister.Canister) // what others do then
		left     int                                                  // canisters
		says     bool                                                 // that it may be there
	}{
		"nothing was appended": {"talk", described, false, nil, 0, false},
		"appended":             {"talk", described, true, nil, 0, false},
		"and continued": {"talk", described, true, func(t *testing.T, store history.Store, list []canister.Canister) {
			more := canister.User{Head: canister.Head{ID: "more"}, Content: canister.Texts("more")}
			if err := store.Append(t.Context(), "talk", len(list), more); err != nil {
				t.Error(err)
			}
		}, 1 + len(conversations()["talk"]), true},
		"another began it": {"talk", described, false, func(t *testing.T, store history.Store, _ []canister.Canister) {
			other := canister.User{Head: canister.Head{ID: "other"}, Content: canister.Texts("other")}
			if err := store.Append(t.Context(), "talk", 0, other); err != nil {
				t.Error(err)
			}
		}, 1, false},
		"another imported it": {"talk", described, false, func(t *testing.T, store history.Store, _ []canister.Canister) {
			if _, err := taken(bundle.Import(t.Context(), store, strings.NewReader(described), nil)); err != nil {
				t.Error(err)
			}
		}, len(conversations()["talk"]), true},
		"another imported what has no title": {"waits", blank, false, func(t *testing.T, store history.Store, _ []canister.Canister) {
			if _, err := taken(bundle.Import(t.Context(), store, strings.NewReader(blank), nil)); err != nil {
				t.Error(err)
			}
		}, len(conversations()["waits"]), true},
	} {
		t.Run(name, func(t *testing.T) {
			store := history.NewMemory()
			ctx, cancel := context.WithCancel(t.Context())
			ids, err := taken(bundle.Import(ctx, &unsure{Store: store, appends: try.appends, after: func(_ string, list []canister.Canister) {
				if try.also != nil {
					try.also(t, store, list)
				}
				cancel()
			}}, strings.NewReader(try.text), nil))
			if len(ids) > 0 || !errors.Is(err, errUnsure) || strings.Contains(err.Error(), "may be in the store") != try.says {
				t.Errorf("taken up: %q, %v", ids, err)
			}
			info, err := store.Info(t.Context(), try.id)
			if info.Length != try.left || (err == nil) != (try.left > 0) || err != nil && !errors.Is(err, history.ErrNotFound) {
				t.Errorf("there is %+v, %v", info, err)
			}
		})
	}
}

// The append of unknown outcome may take effect only while the import finds out: the second
// append waits for it.
func TestImportTakesEffectLate(t *testing.T) {
	for _, id := range []string{"talk", "copy"} {
		was := map[string]string{"talk": "talk", "copy": "waits"}[id]
		text := exported(t, filled(t, history.NewMemory()), was)
		store := history.NewMemory()
		var commit func()
		late := &unsure{Store: store, after: func(at string, list []canister.Canister) {
			commit = func() {
				if err := store.Append(t.Context(), at, 0, list...); err != nil {
					t.Error(err)
				}
			}
		}, late: func() { commit(); commit = func() {} }}
		options := &bundle.ImportOptions{ID: func(string) string { return id }}
		if ids, err := taken(bundle.Import(t.Context(), late, strings.NewReader(text), options)); len(ids) > 0 || !errors.Is(err, errUnsure) {
			t.Errorf("taken up: %q, %v", ids, err)
		}
		commit() // at the latest now
		for info, err := range store.List(t.Context(), history.Filter{}) {
			t.Errorf("as %q: there is %+v, %v", id, info, err)
		}
	}
}

// An import of a conversation that rests names the temporary conversation if its append may still take effect.
func TestImportOfWhatRestsCannotAppend(t *testing.T) {
	text := exported(t, filled(t, history.NewMemory()), "waits")
	_, err := taken(bundle.Import(t.Context(), full{history.NewMemory()}, strings.NewReader(text), &bundle.ImportOptions{ID: func(string) string { return "copy" }}))
	if err == nil || !strings.Contains(err.Error(), `"import-`) {
		t.Error(err)
	}
}

// full is a store to which nothing can be appended.
type full struct{ history.Store }

func (full) Append(context.Context, string, int, ...canister.Canister) error { return errUnsure }

// stuck is a store that forks nothing, or says so, and from which nothing can be deleted.
type stuck struct {
	history.Store
	forks bool
}

func (s stuck) Fork(ctx context.Context, conversation string, length int, to string) error {
	if !s.forks {
		return errUnsure
	}
	return errors.Join(s.Store.Fork(ctx, conversation, length, to), errUnsure)
}

func (stuck) Delete(context.Context, string, int) error { return errors.New("the disk is full") }

// What an interrupted import of a conversation that rests leaves is not open. A fork that was made
// despite an error counts.
func TestImportOfWhatRestsIsInterrupted(t *testing.T) {
	text := exported(t, filled(t, history.NewMemory()), "waits")
	for _, forks := range []bool{false, true} {
		store := history.NewMemory()
		_, err := taken(bundle.Import(t.Context(), stuck{store, forks}, strings.NewReader(text), &bundle.ImportOptions{ID: func(was string) string { return "copy" }}))
		if err == nil || !strings.Contains(err.Error(), "import-") || errors.Is(err, errUnsure) == forks {
			t.Errorf("forks: %v: %v", forks, err)
		}
		var all int
		for info, err := range store.List(t.Context(), history.Filter{}) {
			isOpen := history.Filter{Open: true}.Match(info)
			if all++; err != nil || isOpen != (info.ID == "copy") {
				t.Errorf("forks: %v: %q is open: %v (%v)", forks, info.ID, isOpen, err)
			}
		}
		if want := map[bool]int{false: 1, true: 2}[forks]; all != want {
			t.Errorf("forks: %v: there are %d conversations, want %d", forks, all, want)
		}
	}
}

// An existing conversation stays when another is imported under its ID.
func TestImportOfWhatRestsLeavesWhatIsThere(t *testing.T) {
	store := filled(t, history.NewMemory())
	text := exported(t, store, "waits")
	_, err := taken(bundle.Import(t.Context(), store, strings.NewReader(text), &bundle.ImportOptions{ID: func(string) string { return "talk" }}))
	if !errors.Is(err, history.ErrExists) || len(canisters(t, store, "talk")) != len(conversations()["talk"]) {
		t.Errorf("%v", err)
	}
}
