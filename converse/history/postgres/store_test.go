// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// open returns a store in a new database.
func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, pgtest.DSN(t), nil)
}

func openAt(t testing.TB, dsn string, options *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, options)
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

// find returns the identities of the conversations that a filter lets pass,
// sorted.
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

// harm does something behind the store's back.
func harm(t testing.TB, s *Store, statement string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), s.sql(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// value returns what a query gives.
func value[T any](t testing.TB, s *Store, query string, args ...any) (v T) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), s.sql(query), args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func count(t testing.TB, s *Store, table string) int {
	t.Helper()
	return value[int](t, s, "SELECT count(*) FROM @."+table)
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
	if got := find(t, s, history.Filter{Text: "rain."}); got != "other talk" {
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
	for _, table := range []string{"conversations", "canisters", "contents", "parts"} {
		if n := count(t, s, table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// Who appends a long content, forks and deletes at the same time as others
// neither loses a content nor leaves one behind.
func TestSharedContentsWhileOthersDelete(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wait sync.WaitGroup
	contents := []string{strings.Repeat("a", 3000), strings.Repeat("b", 3000), strings.Repeat("c", 3000)}
	for worker := range 8 {
		s := openAt(t, dsn, nil)
		wait.Go(func() {
			for round := range 15 {
				conversation, fork := fmt.Sprint("talk", worker), fmt.Sprint("fork", worker)
				mine := slices.Clone(contents)
				if worker%2 == 0 {
					slices.Reverse(mine)
				}
				list := []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts(mine...)}}
				err := errors.Join(s.Append(t.Context(), conversation, 0, list...), s.Fork(t.Context(), conversation, 1, fork), s.Delete(t.Context(), conversation, history.AnyLength))
				lines, readErr := read(t.Context(), s, fork, 0)
				if err = errors.Join(err, readErr); err != nil || len(lines) != 1 {
					t.Errorf("round %d: %d lines, %v", round, len(lines), err)
				}
				if err := s.Delete(t.Context(), fork, history.AnyLength); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	s := openAt(t, dsn, nil)
	if n, m := count(t, s, "contents"), count(t, s, "parts"); n != 0 || m != 0 {
		t.Errorf("%d contents and %d parts are left", n, m)
	}
}

// Of two that delete conversations with the same content at the same time, the
// last one removes it.
func TestTheLastRemovesIt(t *testing.T) {
	s := open(t)
	long := strings.Repeat("long", 1000)
	add(t, s, "a", 0, long)
	add(t, s, "b", 0, long)
	deleted := make(chan error, 1)
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { // as Delete of a does
		_, err := tx.Exec(t.Context(), s.sql("SELECT FROM @.contents FOR UPDATE; DELETE FROM @.parts WHERE conversation = 1; DELETE FROM @.canisters WHERE conversation = 1; DELETE FROM @.conversations WHERE key = 1"))
		if err != nil {
			return err
		}
		go func() { deleted <- s.Delete(t.Context(), "b", history.AnyLength) }()
		until(t, "the other one waits, or has gone ahead", func() bool {
			return len(deleted) == 1 || value[int](t, s, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
		})
		return nil
	})
	if err := errors.Join(err, <-deleted); err != nil || count(t, s, "contents") != 0 {
		t.Errorf("a content is left; %v", err)
	}
}

func TestSearch(t *testing.T) {
	s := open(t)
	add(t, s, "rain", 0, "Is it RAINING in Oslo?", "Yes, it is.")
	add(t, s, "sun", 0, "The sun shines in Oslo", `say "AND NOT (x)" NEAR* -col:`, "a\x00b naïve ÄRGER 日本語", `100% a_b c:\d`)
	add(t, s, "long", 0, strings.Repeat("x", 5000)+" hidden "+strings.Repeat("y", 5000))
	title := "On Weather"
	if err := s.Describe(t.Context(), "rain", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T) {
		for text, want := range map[string]string{
			"":                       "long rain sun",
			"oslo":                   "rain sun",
			"OSLO yes":               "rain",
			"yes raining WEATHER on": "rain",
			"yes shines":             "",
			"hidden":                 "long",
			"ain":                    "rain",
			"it":                     "rain",
			"x)":                     "sun",
			`"AND`:                   "sun",
			"near* -col:":            "sun",
			"os%lo":                  "",
			"100%":                   "sun",
			"a_b":                    "sun",
			"a_":                     "sun",
			"o_lo":                   "",
			`c:\d`:                   "sun",
			`\`:                      "sun",
			"a\x00b":                 "sun",
			"ärger":                  "sun",
			"naive":                  "",
			"本":                      "sun",
			"'; DROP TABLE texts":    "",
		} {
			if got := find(t, s, history.Filter{Text: text}); got != want {
				t.Errorf("%q finds %q, want %q", text, got, want)
			}
		}
		if got := find(t, s, history.Filter{Text: "oslo", Owner: "nobody"}); got != "" {
			t.Errorf("%q is found of another owner", got)
		}
	}
	t.Run("scan", check)
	harm(t, s, "CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public")
	for _, table := range []string{"conversations", "canisters", "contents"} {
		harm(t, s, "CREATE INDEX ON @."+table+" USING gin (folded public.gin_trgm_ops)")
	}
	t.Run("index", func(t *testing.T) {
		check(t)
		if err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { // tables this small need no index
			_, err := tx.Exec(t.Context(), "SET LOCAL enable_seqscan = off")
			if err == nil {
				var plan []string
				found, _ := tx.Query(t.Context(), s.sql("EXPLAIN SELECT conversation FROM @.canisters WHERE folded LIKE $1"), "%shines%")
				if plan, err = pgx.CollectRows(found, pgx.RowTo[string]); !strings.Contains(strings.Join(plan, "\n"), "Bitmap Index Scan") {
					t.Errorf("the plan is %s", strings.Join(plan, "\n"))
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPages(t *testing.T) {
	s := open(t)
	var all []string
	for i := range 2*pageRows + 7 {
		all = append(all, fmt.Sprint(i))
	}
	all[5], all[6], all[pageRows] = strings.Repeat("x", pageBytes), strings.Repeat("z", 2000), strings.Repeat("y", pageBytes)
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
	from, err := s.extent(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	// The rest of a page that is full of bytes is not even sent.
	if page, err := s.page(t.Context(), from, 0); err != nil || len(page) != 6 {
		t.Errorf("a page of %d rows, want 6; %v", len(page), err)
	}
}

// What is done in a loop over a conversation does not wait for the loop, and the
// loop does not see it.
func TestALoopIsInNobodysWay(t *testing.T) {
	s := openAt(t, pgtest.DSN(t), &Options{Connections: 1})
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
	if got := value[int](t, s, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// What was acknowledged survives the loss of power, which no test can cause.
func TestCommitsWaitForTheDisk(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openAt(t, dsn, nil)
	harm(t, s, `CREATE TABLE public.seen (setting text)`)
	harm(t, s, `CREATE FUNCTION public.watch() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO public.seen VALUES (current_setting(''synchronous_commit'') || '' '' || current_setting(''transaction_isolation'')); RETURN NULL; END'`)
	harm(t, s, `CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON @.conversations EXECUTE FUNCTION public.watch()`)
	for setting, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "remote_apply": "remote_apply"} {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		other := openAt(t, dsn+separator+"synchronous_commit="+setting+"&default_transaction_isolation=serializable", nil)
		harm(t, s, "DELETE FROM public.seen")
		add(t, other, setting, 0, "text")
		add(t, other, setting, 1, "text")
		err := errors.Join(other.Describe(t.Context(), setting, history.Change{}), other.Fork(t.Context(), setting, 1, "fork "+setting), other.Delete(t.Context(), setting, history.AnyLength))
		if err != nil {
			t.Fatal(err)
		}
		if got := value[string](t, s, "SELECT string_agg(DISTINCT setting, ',') FROM public.seen"); got != want+" read committed" {
			t.Errorf("with synchronous_commit %s, it is %s", setting, got)
		}
		if got := value[int](t, s, "SELECT count(*) FROM public.seen"); got != 5 {
			t.Errorf("%d writes were seen, want 5", got)
		}
	}
}

// Two schemas of one database share nothing, whatever they are called.
func TestSchemas(t *testing.T) {
	dsn := pgtest.DSN(t)
	first := openAt(t, dsn, nil)
	second := openAt(t, dsn, &Options{Schema: `Odd "name"; DROP`})
	add(t, first, "talk", 0, "first")
	add(t, second, "talk", 0, "second", "too")
	if got := texts(t, first, "talk"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the first has %q", got)
	}
	if got := texts(t, second, "talk"); !slices.Equal(got, []string{"second", "too"}) {
		t.Errorf("the second has %q", got)
	}
	for _, options := range []Options{{Schema: strings.Repeat("x", 64)}, {Schema: "a\x00"}, {Connections: -1}, {Timeout: -1}} {
		if _, err := Open(t.Context(), dsn, &options); err == nil || !strings.Contains(err.Error(), "Options.") {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

// A store that was closed leaves no goroutine and no connection.
func TestNothingIsLeft(t *testing.T) {
	dsn := pgtest.DSN(t)
	watcher := openAt(t, dsn, nil)
	value[int](t, watcher, "SELECT 1")
	before := runtime.NumGoroutine()
	s, err := Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, "talk", 0, "hello")
	for range s.Watch(t.Context(), "talk") {
		break
	}
	for range s.Listen(t.Context(), "talk") {
		break
	}
	for range s.Read(t.Context(), "talk", 0) {
		break
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines are left: %s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	until(t, "its connections are gone", func() bool {
		return value[int](t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == 0
	})
}

// until waits for what the server does in its own time.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("it does not come that %s", what)
		}
	}
}
