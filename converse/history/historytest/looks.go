// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/suite"
)

// shortened reports whether the tests run with -short.
func shortened() bool { return flag.Lookup("test.short") != nil && testing.Short() }

func ptr[T any](value T) *T { return &value }

func listOrder(s *storeSubject) {
	s.lists(history.Filter{})
	for _, conversation := range []string{"b", "a", "c"} {
		s.changed(conversation)
	}
	s.lists(history.Filter{}, "c", "a", "b")
	s.changed("b")
	s.lists(history.Filter{}, "b", "c", "a")
	s.describe("a", history.Change{Title: ptr("a title does not change the order")})
	s.lists(history.Filter{}, "b", "c", "a")
}

func listFilter(s *storeSubject) {
	s.append("a", 0, says("c0", "hello"), replies("c1", "hello"))
	s.fork("a", 0, "empty")
	a := s.changed("a") // its last canister is the user's now
	b := s.changed("b")
	c := s.changed("c")
	s.append("c", c.Length, replies("answer", "done"))
	s.changed("d")
	s.describe("a", history.Change{Tags: &[]string{"red", "green"}, Owner: ptr("ann")})
	s.describe("b", history.Change{Tags: &[]string{"red"}, Owner: ptr("bob")})
	s.describe("c", history.Change{Tags: &[]string{"green"}, Owner: ptr("ann")})
	early, late := time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) // more than 64 bits of nanoseconds
	for _, test := range []struct {
		filter history.Filter
		want   []string
	}{
		{history.Filter{Tags: []string{"red"}}, []string{"b", "a"}},
		{history.Filter{Tags: []string{"green", "red"}}, []string{"a"}},
		{history.Filter{Tags: []string{"re"}}, nil},
		{history.Filter{Tags: []string{"Red"}}, nil},
		{history.Filter{Owner: "ann"}, []string{"c", "a"}},
		{history.Filter{Owner: "an"}, nil},
		{history.Filter{Owner: "ann\x00"}, nil}, // which no Describe accepts
		{history.Filter{Owner: "\xff"}, nil},
		{history.Filter{Tags: []string{"red", "\x00"}}, nil},
		{history.Filter{Tags: []string{"\xff"}}, nil},
		{history.Filter{Open: true}, []string{"d", "b", "a"}},
		{history.Filter{Open: true, Owner: "ann"}, []string{"a"}},
		{history.Filter{Since: b.Changed}, []string{"d", "c", "b"}},
		{history.Filter{Since: b.Changed, Open: true}, []string{"d", "b"}},
		{history.Filter{Since: a.Changed, Until: b.Changed}, []string{"a"}},
		{history.Filter{Since: b.Changed, Until: a.Changed}, nil},
		{history.Filter{Since: early}, []string{"d", "c", "b", "a", "empty"}},
		{history.Filter{Until: late}, []string{"d", "c", "b", "a", "empty"}},
		{history.Filter{Since: late}, nil},
		{history.Filter{Until: early}, nil},
		{history.Filter{Tags: []string{"green"}, Owner: "ann", Limit: 1}, []string{"c"}},
	} {
		s.lists(test.filter, test.want...)
	}
}

func listSearch(s *storeSubject) {
	head := func(id string) canister.Head { return canister.Head{ID: id} }
	s.append("weather", 0,
		canister.Supervisor{Head: head("s"), Content: canister.Texts("Speak like a meteorologist.")},
		canister.Document{Head: head("d"), Title: "Almanac", Content: canister.Texts("Snow in February.")},
		says("u", "What should I wear in Oslo?"),
		canister.Assistant{Head: head("a"), Content: canister.Texts("Let me look it up.")},
		canister.Invocation{Head: head("i"), Message: "a", Name: "local__forecast", Arguments: `{"place": "Tromsø"}`},
		canister.Result{Head: head("r"), Invocation: "i", Content: canister.Texts("sleet " + strings.Repeat("and more ", 400) + "hail")},
	)
	s.append("cooking", 0, says("u", "ÄPFEL in Oslo, 100% \"fresh\" under_score"))
	s.describe("cooking", history.Change{Title: ptr("Dinner for two")})
	s.changed("cooking")
	for _, test := range []struct {
		text string
		want []string
	}{
		{"oslo", []string{"cooking", "weather"}},
		{"  OSLO\t", []string{"cooking", "weather"}},
		{"snow", []string{"weather"}},
		{"wear meteorologist", []string{"weather"}},
		{"hail SLEET", []string{"weather"}},
		{"almanac", []string{"weather"}},
		{"tromsø forecast", []string{"weather"}},
		{"dinner", []string{"cooking"}},
		{"two oslo", []string{"cooking"}},
		{"äpfel", []string{"cooking"}},
		{"oslo absent", nil},
		{"fresh\" 100%", []string{"cooking"}},
		{"under_score", []string{"cooking"}},
		{"\"absent", nil},
		{"oslo OR absent", nil},
		{"absent*", nil},
		{"(oslo", nil},
	} {
		if test.text == "(oslo" || test.text == "fresh\" 100%" {
			// Stores split words differently, so the result is open; but it must not be
			// an error.
			if _, err := suite.Collect(s.store.List(s.context(), history.Filter{Text: test.text})); err != nil {
				s.Errorf("List of %q: %v", test.text, err)
			}
			continue
		}
		s.lists(history.Filter{Text: test.text}, test.want...)
	}
	s.lists(history.Filter{Text: "oslo", Limit: 1}, "cooking")
	s.fork("weather", 3, "fork")
	s.lists(history.Filter{Text: "snow"}, "fork", "weather")
	s.lists(history.Filter{Text: "sleet"}, "weather")
	s.remove("weather")
	s.lists(history.Filter{Text: "snow"}, "fork")
}

func listLimit(s *storeSubject) {
	for i := range 5 {
		s.changed(fmt.Sprint("n", i))
	}
	s.lists(history.Filter{Limit: 2}, "n4", "n3")
	s.lists(history.Filter{Limit: 9}, "n4", "n3", "n2", "n1", "n0")
	for info, err := range s.store.List(s.context(), history.Filter{}) {
		if err != nil || info.ID != "n4" {
			s.Fatalf("the loop begins with %v, %v", info, err)
		}
		s.append(info.ID, info.Length, says("inside", "a store can be used in the loop"))
		break
	}
}

func describeInfo(s *storeSubject) {
	s.append("talk", 0, numbered(0, 2)...)
	want := s.info("talk")
	if want.Title != "" || len(want.Tags) > 0 || want.Owner != "" || want.ID != "talk" || want.Parent != "" || want.ParentLength != 0 {
		s.Errorf("a new conversation is %+v", want)
	}
	s.describe("talk", history.Change{Title: ptr("Über \"Oslo\"\n<b>🎻")})
	want.Title = "Über \"Oslo\"\n<b>🎻"
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{Tags: &[]string{"b", "a", "b", "a b,c"}})
	want.Tags = []string{"a", "a b,c", "b"}
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{Owner: ptr("ann@example.com")})
	want.Owner = "ann@example.com"
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{})
	for _, bad := range []string{"\xff", "a\x00b"} {
		for _, change := range []history.Change{{Title: &bad}, {Owner: &bad}, {Tags: &[]string{"good", bad}}} {
			if err := s.store.Describe(s.context(), "talk", change); err == nil {
				s.Errorf("Describe accepts %q", bad)
			}
		}
	}
	long := strings.Repeat("é", history.MaxID/2)
	if err := s.store.Describe(s.context(), "talk", history.Change{Owner: ptr(long + "x")}); err == nil {
		s.Errorf("Describe accepts an owner of %d bytes", history.MaxID+1)
	}
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{Owner: &long})
	want.Owner = long
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{Retag: func(tags []string) []string { return append(tags[:1], "b", "c", "b") }})
	want.Tags = []string{"a", "b", "c"}
	s.sameInfo(s.info("talk"), want)
	s.describe("talk", history.Change{Title: ptr(""), Tags: &[]string{}, Owner: ptr("")})
	want.Title, want.Tags, want.Owner = "", nil, ""
	s.sameInfo(s.info("talk"), want)
	s.holds("talk", numbered(0, 2)...)
}

func infoFollows(s *storeSubject) {
	first := s.changed("talk")
	if first.Created.IsZero() || first.Changed.Before(first.Created) {
		s.Errorf("it was created at %v and changed at %v", first.Created, first.Changed)
	}
	if age := time.Since(first.Changed).Abs(); age > time.Hour {
		s.Errorf("it changed %v from now", age)
	}
	length := first.Length
	for _, c := range []canister.Canister{
		replies("a", "hello"), canister.Invocation{Head: canister.Head{ID: "i"}}, canister.Result{Head: canister.Head{ID: "r"}},
		canister.Document{Head: canister.Head{ID: "d"}}, canister.Supervisor{Head: canister.Head{ID: "s"}}, says("u", "hello"),
	} {
		s.append("talk", length, c)
		length++
		info := s.info("talk")
		if info.Length != length || info.Last != c.Kind() || !info.Created.Equal(first.Created) || info.Changed.Before(first.Changed) {
			s.Errorf("after %s the info is %+v", c.Kind(), info)
		}
	}
}

func forkAnywhere(s *storeSubject) {
	all := []canister.Canister{
		says("u", "look"), canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "a", CallID: "1", Arguments: strings.Repeat("x", 3000)},
		canister.Invocation{Head: canister.Head{ID: "i2"}, Message: "a", CallID: "2"},
		canister.Result{Head: canister.Head{ID: "r1"}, Invocation: "i1", Content: canister.Texts(strings.Repeat("y", 3000))},
		canister.Result{Head: canister.Head{ID: "r2"}, Invocation: "i2"},
	}
	s.append("talk", 0, all...)
	s.describe("talk", history.Change{Title: ptr("look"), Tags: &[]string{"t"}, Owner: ptr("ann")})
	for length := range len(all) + 1 {
		to := fmt.Sprint("fork", length)
		s.fork("talk", length, to)
		s.holds(to, all[:length]...)
		info := s.info(to)
		want := history.Info{ID: to, Title: "look", Tags: []string{"t"}, Owner: "ann", Length: length, Parent: "talk", ParentLength: length, Created: info.Created, Changed: info.Changed}
		if length > 0 {
			want.Last = all[length-1].Kind()
		}
		s.sameInfo(info, want)
		if info.Created.Before(s.info("talk").Created) || info.Changed.Before(info.Created) {
			s.Errorf("the fork was created at %v and changed at %v", info.Created, info.Changed)
		}
		s.append(to, length, says("own", to))
		s.holds(to, append(slices.Clone(all[:length]), says("own", to))...)
	}
	s.describe("fork2", history.Change{Title: ptr("another"), Tags: &[]string{"u"}})
	s.append("talk", len(all), says("on", "and on"))
	s.holds("talk", append(all, says("on", "and on"))...)
	s.holds("fork6", append(slices.Clone(all), says("own", "fork6"))...)
	if info := s.info("talk"); info.Title != "look" || !slices.Equal(info.Tags, []string{"t"}) {
		s.Errorf("a change of the fork also changed %+v", info)
	}
}

func forkOfFork(s *storeSubject) {
	long := strings.Repeat("long ", 1000)
	all := []canister.Canister{says("1", "a"+long), says("2", "b"+long), says("3", "c"+long)}
	s.append("talk", 0, all...)
	s.fork("talk", 2, "child")
	s.append("child", 2, says("x", "d"+long))
	s.fork("child", 3, "grandchild")
	s.fork("child", 1, "other")
	s.remove("talk")
	s.missing("talk")
	s.holds("child", all[0], all[1], says("x", "d"+long))
	s.remove("child")
	s.holds("grandchild", all[0], all[1], says("x", "d"+long))
	s.holds("other", all[0])
	s.append("other", 1, says("y", "e"))
	s.holds("other", all[0], says("y", "e"))
	if info := s.info("grandchild"); info.Parent != "child" || info.ParentLength != 3 {
		s.Errorf("the fork of the fork comes from %q at %d", info.Parent, info.ParentLength)
	}
	s.append("child", 0, says("new", "of the same identity"))
	s.holds("child", says("new", "of the same identity"))
}

func forkErrors(s *storeSubject) {
	s.append("talk", 0, numbered(0, 3)...)
	s.append("other", 0, numbered(0, 1)...)
	for _, test := range []struct {
		from   string
		length int
		to     string
		want   error
	}{
		{"nothing", 0, "new", history.ErrNotFound},
		{"talk", 4, "new", history.ErrNotFound},
		{"talk", -1, "new", history.ErrNotFound},
		{"talk", 2, "other", history.ErrExists},
		{"talk", 2, "talk", history.ErrExists},
	} {
		if err := s.store.Fork(s.context(), test.from, test.length, test.to); !errors.Is(err, test.want) {
			s.Errorf("Fork of %s at %d to %s is %v, want %v", test.from, test.length, test.to, err, test.want)
		}
	}
	s.missing("new")
	s.holds("talk", numbered(0, 3)...)
	s.holds("other", numbered(0, 1)...)
}

func deleteFrees(s *storeSubject) {
	s.append("talk", 0, numbered(0, 3)...)
	s.describe("talk", history.Change{Title: ptr("old"), Tags: &[]string{"old"}})
	s.append("other", 0, numbered(0, 1)...)
	s.remove("talk")
	s.remove("talk")
	s.remove("nothing")
	s.missing("talk")
	s.lists(history.Filter{}, "other")
	s.conflict("talk", 0, 3, says("c3", "on we go"))
	s.missing("talk")
	s.append("talk", 0, says("c0", "anew"))
	s.holds("talk", says("c0", "anew"))
	if info := s.info("talk"); info.Title != "" || len(info.Tags) > 0 || info.Length != 1 {
		s.Errorf("a new conversation with the identity of a deleted one is %+v", info)
	}
}

func identitiesOdd(s *storeSubject) {
	odd := []string{
		"a", "A", "talk", "Talk", "TALK", "straße", "STRASSE", "ß", "é", "e\u0301", "東京", "🎻", " ", " a", "a ", "a.", "a..",
		".", "..", "../talk", "../../etc/passwd", "/", "/a", "a/", "a/b", "a//b", `a\b`, `C:\a`, "con", "NUL", "aux.txt", "a:b", "*", "?", `"`, "'", "';--", "%", "_", "%00",
		"-rf", "~", "~root", "$HOME", "a&b", "lost+found", ".hidden", "history.jsonl", "contents", strings.Repeat("a", 255), strings.Repeat("a", 300), strings.Repeat("é", 300), strings.Repeat("/", 300), strings.Repeat("x", history.MaxID),
	}
	for _, conversation := range odd {
		s.missing(conversation)
		s.append(conversation, 0, says("c0", "I am "+conversation))
	}
	for _, conversation := range odd {
		s.append(conversation, 1, says("c1", "and again"))
		s.holds(conversation, says("c0", "I am "+conversation), says("c1", "and again"))
		if info := s.info(conversation); info.ID != conversation || info.Length != 2 {
			s.Errorf("the info of %s is %+v", suite.Quote(conversation), info)
		}
	}
	infos, err := suite.Collect(s.store.List(s.context(), history.Filter{}))
	if err != nil || len(infos) != len(odd) {
		s.Errorf("want %d conversations in the list, got %d: %v", len(odd), len(infos), err)
	}
	for _, conversation := range odd {
		s.remove(conversation)
		s.missing(conversation)
	}
	s.lists(history.Filter{})
}

func identitiesBad(s *storeSubject) {
	s.append("talk", 0, numbered(0, 2)...)
	for _, bad := range []string{"", "a\x00b", "\x00", "a\nb", "\x1b[2J", "\u0085", "\xff", strings.Repeat("x", history.MaxID+1)} {
		if err := s.store.Append(s.context(), bad, 0, says("c0", "bad")); err == nil {
			s.Errorf("Append to %s succeeded", suite.Quote(bad))
		}
		if err := s.store.Fork(s.context(), "talk", 1, bad); err == nil {
			s.Errorf("Fork to %s succeeded", suite.Quote(bad))
		}
		if err := s.store.Fork(s.context(), bad, 0, "new"); err == nil {
			s.Errorf("Fork of %s succeeded", suite.Quote(bad))
		}
		if _, err := s.store.Info(s.context(), bad); err == nil {
			s.Errorf("Info of %s succeeded", suite.Quote(bad))
		}
		if list, _ := suite.Collect(s.store.Read(s.context(), bad, 0)); len(list) > 0 {
			s.Errorf("Read of %s yields %s", suite.Quote(bad), identities(list))
		}
		_ = s.store.Delete(s.context(), bad, history.AnyLength) // may return an error or not
	}
	s.lists(history.Filter{}, "talk")
	s.holds("talk", numbered(0, 2)...)
}

func errorsNotFound(s *storeSubject) {
	if _, err := s.store.Info(s.context(), "nothing"); !errors.Is(err, history.ErrNotFound) {
		s.Errorf("Info: %v", err)
	}
	if err := s.store.Describe(s.context(), "nothing", history.Change{Title: ptr("x")}); !errors.Is(err, history.ErrNotFound) {
		s.Errorf("Describe: %v", err)
	}
	if err := s.store.Fork(s.context(), "nothing", 0, "new"); !errors.Is(err, history.ErrNotFound) {
		s.Errorf("Fork: %v", err)
	}
	s.missing("nothing")
	s.lists(history.Filter{})
}

// everything calls each method of the store, and returns their errors.
func (s *storeSubject) everything(ctx context.Context) map[string]error {
	_, read := suite.Collect(s.store.Read(ctx, "talk", 0))
	_, list := suite.Collect(s.store.List(ctx, history.Filter{}))
	_, info := s.store.Info(ctx, "talk")
	return map[string]error{
		"Read": read, "List": list, "Info": info,
		"Append":   s.store.Append(ctx, "talk", 2, says("new", "new")),
		"Describe": s.store.Describe(ctx, "talk", history.Change{Title: ptr("new")}),
		"Fork":     s.store.Fork(ctx, "talk", 1, "fork"),
		"Delete":   s.store.Delete(ctx, "talk", history.AnyLength),
	}
}

func endContext(s *storeSubject) {
	s.append("talk", 0, numbered(0, 2)...)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for method, err := range s.everything(ended) {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a context that has ended: %v", method, err)
		}
	}
	s.holds("talk", numbered(0, 2)...)
	s.missing("fork")
	if info := s.info("talk"); info.Title != "" {
		s.Errorf("the title is %q", info.Title)
	}
}

func endDuringRead(s *storeSubject) {
	s.append("talk", 0, numbered(0, 2000)...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	count, failed := 0, error(nil)
	for _, err := range s.store.Read(ctx, "talk", 0) {
		if failed != nil {
			s.Fatalf("the loop continues after the error %v", failed)
		}
		if failed = err; err == nil {
			count++
		}
		cancel()
	}
	if !errors.Is(failed, context.Canceled) || count >= 2000 {
		s.Errorf("the loop ends after %d canisters with %v", count, failed)
	}
	s.holds("talk", numbered(0, 2000)...)
}

func endClose(s *storeSubject) {
	s.append("talk", 0, numbered(0, 2)...)
	for range 2 {
		if err := s.store.Close(); err != nil {
			s.Fatalf("Close: %v", err)
		}
	}
	for method, err := range s.everything(s.context()) {
		if !errors.Is(err, history.ErrClosed) {
			s.Errorf("%s of a closed store: %v, want ErrClosed", method, err)
		}
	}
}

func durableAll(s *storeSubject) {
	long := strings.Repeat("long ", 1000)
	s.append("talk", 0, says("1", "a"+long), says("2", "b"), replies("3", "c"+long))
	s.describe("talk", history.Change{Title: ptr("title"), Tags: &[]string{"y", "x"}, Owner: ptr("ann")})
	s.fork("talk", 2, "fork")
	s.append("gone", 0, says("1", "d"+long))
	s.remove("gone")
	talk, fork := s.info("talk"), s.info("fork")
	for range 2 {
		s.reopen()
		s.holds("talk", says("1", "a"+long), says("2", "b"), replies("3", "c"+long))
		s.holds("fork", says("1", "a"+long), says("2", "b"))
		s.sameInfo(s.info("talk"), talk)
		s.sameInfo(s.info("fork"), fork)
		s.missing("gone")
		s.lists(history.Filter{}, "fork", "talk")
		s.lists(history.Filter{Text: "c" + long[:4], Owner: "ann"}, "talk")
		s.append("talk", 0, says("1", "a"+long)) // already there
		s.conflict("talk", 3, 2, says("x", "late"))
	}
	s.append("talk", 3, says("4", "on"))
	s.reopen()
	s.holds("talk", says("1", "a"+long), says("2", "b"), replies("3", "c"+long), says("4", "on"))
}

func durableAppends(s *storeSubject) {
	for i := range 6 {
		s.append("talk", 2*i, numbered(2*i, 2*i+2)...)
		s.reopen()
		s.holds("talk", numbered(0, 2*i+2)...)
	}
}

func sharedSeen(s *storeSubject) {
	here, there := s.store, s.open()
	both := func(check func()) {
		for _, s.store = range []history.Store{there, here} {
			check()
		}
	}
	for i := range 5 {
		s.store = []history.Store{here, there}[i%2]
		s.append("talk", i, numbered(i, i+1)...)
		both(func() {
			s.holds("talk", numbered(0, i+1)...)
			s.equal("talk", s.read("talk", i), numbered(i, i+1))
			if info := s.info("talk"); info.Length != i+1 {
				s.Errorf("the length is %d, want %d", info.Length, i+1)
			}
			s.conflict("talk", i+1, i, says("late", "late"))
			s.lists(history.Filter{}, "talk")
		})
	}
	s.describe("talk", history.Change{Title: ptr("here")})
	both(func() { s.lists(history.Filter{Text: "here"}, "talk") })
	s.fork("talk", 3, "fork")
	both(func() { s.holds("fork", numbered(0, 3)...) })
	s.remove("talk")
	both(func() { s.missing("talk") })
	s.store = there
	s.append("talk", 0, says("new", "anew"))
	both(func() { s.holds("talk", says("new", "anew")) })
}
