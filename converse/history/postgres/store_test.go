// SPDX-License-Identifier: Apache-2.0

package postgres

import (
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
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
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

// harm changes the database without the store.
func harm(t testing.TB, s *Store, statement string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), s.sql(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// value returns the result of a query.
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
	storetest.LongContents(t, s, func(table string) int { return count(t, s, table) }, "conversations", "canisters", "contents", "parts")
}

// Concurrent appends of a long content, forks and deletes neither lose a content nor
// leave one behind.
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
				err := errors.Join(s.Append(t.Context(), conversation, 0, list...), s.Fork(t.Context(), conversation, 1, fork),
					s.Delete(t.Context(), conversation, history.AnyLength))
				lines, readErr := storetest.Read(t.Context(), s, fork, 0)
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
	storetest.Add(t, s, "a", 0, long)
	storetest.Add(t, s, "b", 0, long)
	deleted := make(chan error, 1)
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { // as Delete of a does
		_, err := tx.Exec(t.Context(),
			s.sql("SELECT FROM @.contents FOR UPDATE; DELETE FROM @.parts WHERE conversation = 1; DELETE FROM @.canisters WHERE conversation = 1; DELETE FROM @.conversations WHERE key = 1"))
		if err != nil {
			return err
		}
		go func() { deleted <- s.Delete(t.Context(), "b", history.AnyLength) }()
		until(t, "the other one waits, or has gone ahead", func() bool {
			return len(deleted) == 1 || value[int](t, s,
				"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
		})
		return nil
	})
	if err := errors.Join(err, <-deleted); err != nil || count(t, s, "contents") != 0 {
		t.Errorf("a content is left; %v", err)
	}
}

func TestSearch(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "rain", 0, "Is it RAINING in Oslo?", "Yes, it is.")
	storetest.Add(t, s, "sun", 0, "The sun shines in Oslo", `say "AND NOT (x)" NEAR* -col:`, "a\x00b naïve ÄRGER 日本語", `100% a_b c:\d`)
	storetest.Add(t, s, "long", 0, strings.Repeat("x", 5000)+" hidden "+strings.Repeat("y", 5000))
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
			if got := storetest.Find(t, s, history.Filter{Text: text}); got != want {
				t.Errorf("%q finds %q, want %q", text, got, want)
			}
		}
		if got := storetest.Find(t, s, history.Filter{Text: "oslo", Owner: "nobody"}); got != "" {
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
	storetest.Pages(t, s, sqlstore.PageRows, sqlstore.PageBytes)
	from, err := s.common.Extent(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	// The rest of a page that is full of bytes is not even sent.
	if page, err := s.common.DB.Page(t.Context(), sqlstore.Want{Extent: from, To: from.Length, Bytes: sqlstore.PageBytes}); err != nil || len(page) != 6 {
		t.Errorf("a page of %d rows, want 6; %v", len(page), err)
	}
}

// What is done in a loop over a conversation does not wait for the loop, and the
// loop does not see it.
func TestALoopIsInNobodysWay(t *testing.T) {
	s := openAt(t, pgtest.DSN(t), &Options{Connections: 1})
	storetest.Loop(t, s, sqlstore.PageRows)
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
		storetest.Add(t, other, setting, 0, "text")
		storetest.Add(t, other, setting, 1, "text")
		err := errors.Join(other.Describe(t.Context(), setting, history.Change{}),
			other.Fork(t.Context(), setting, 1, "fork "+setting), other.Delete(t.Context(), setting, history.AnyLength))
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
	storetest.Add(t, first, "talk", 0, "first")
	storetest.Add(t, second, "talk", 0, "second", "too")
	if got := storetest.Texts(t, first, "talk"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the first has %q", got)
	}
	if got := storetest.Texts(t, second, "talk"); !slices.Equal(got, []string{"second", "too"}) {
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
	storetest.Add(t, s, "talk", 0, "hello")
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
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines are left: %s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	until(t, "its connections are gone", func() bool {
		return value[int](t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == 0
	})
}

// until waits for an asynchronous action of the server.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("it does not come that %s", what)
		}
	}
}

// Conversations expire by the clock of the server, also if that of this machine is fast.
func TestRetentionWithAFastClock(t *testing.T) {
	s := open(t)
	if err := s.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")}); err != nil {
		t.Fatal(err)
	}
	for info, err := range (history.Retention{Keep: time.Hour, ExpireOpen: true}).Expired(t.Context(), s, time.Now().Add(24*time.Hour)) {
		t.Errorf("expired is %q, %v", info.ID, err)
	}
}
