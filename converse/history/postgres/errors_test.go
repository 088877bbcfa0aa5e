// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// as returns the DSN with another user, database or host, where they are not "".
func as(t testing.TB, dsn, user, password, database, host string) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		address.User = url.UserPassword(user, password)
	}
	if database != "" {
		address.Path = "/" + database
	}
	if host != "" {
		address.Host = host
	}
	return address.String()
}

// nobodyThere returns an address without a listener.
func nobodyThere(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

const secret = "hunter2-is-secret"

// What is wrong with a DSN is said, where, and without a password.
func TestWrongDSN(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	server := must(url.Parse(dsn)).Host
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, try := range []struct {
		name, dsn string
		want      []string
	}{
		{"no server", as(t, dsn, "consort", secret, "", nobodyThere(t)), []string{"cannot be reached", "127.0.0.1:", "connection refused"}},
		{"no host", as(t, dsn, "consort", secret, "", "no.such.host.invalid"), []string{"cannot be reached", "no.such.host.invalid"}},
		{"silent", as(t, dsn, "consort", secret, "", silent.Addr().String()), []string{silent.Addr().String(), "no answer within Options.Timeout"}},
		{"bad password", as(t, dsn, "consort", secret, "", ""), []string{server, "rejects this user", "password authentication failed", `"consort"`}},
		{"no user", as(t, dsn, "stranger", secret, "", ""), []string{server, "rejects this user", `"stranger"`}},
		{"no database", as(t, dsn, "", "", "nowhere", ""), []string{server + "/nowhere", "no such database"}},
		{"no DSN", "mysql://root:" + secret + "@db/talks", []string{"the DSN cannot be read"}},
		{"bad URL", "postgres://root:" + secret + "%zz@db:port/talks", []string{"the DSN cannot be read"}},
		{"bad port", "postgres://root:" + secret + "@db:port/talks", []string{"the DSN cannot be read"}},
		{"odd password", "postgres://root:a@b/" + secret + "?x@db/talks", []string{"postgres"}},
		{"bad pair", "host=db password='" + secret, []string{"the DSN cannot be read"}},
		{"@ in the password", "postgres://root:a@" + secret + "@db/talks", []string{"the DSN cannot be read"}},
		{"/ in the password", "postgres://root:5432/" + secret + "@db/talks", []string{"the DSN cannot be read"}},
		{"bad option", "postgres://root:" + secret + "@db/talks?sslmode=perhaps", []string{"the DSN cannot be read"}},
	} {
		t.Run(try.name, func(t *testing.T) {
			_, err := Open(t.Context(), try.dsn, &Options{Timeout: 2 * time.Second})
			if err == nil {
				t.Fatal("it is opened")
			}
			for _, want := range try.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(fmt.Sprintf("%v %+v", e, e), secret) {
					t.Errorf("the password is in %+v", e)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dsn, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What was changed in the tables is found, and told with its place.
func TestDamage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	for name, try := range map[string]struct{ harm, want string }{
		"a bit of a line": {
			"UPDATE @.canisters SET line = overlay(line PLACING chr(ascii(substr(line, 30, 1)) # 1) FROM 30 FOR 1) WHERE conversation = 1 AND position = 1",
			"table canisters, conversation 1, position 1: the checksum is",
		},
		"a bit of an id": {
			"UPDATE @.canisters SET id = set_bit(id, 3, 1 - get_bit(id, 3)) WHERE conversation = 1 AND position = 1", "position 1: the checksum",
		},
		"a sum":      {"UPDATE @.canisters SET sum = sum # 1 WHERE conversation = 1 AND position = 1", "position 1: the checksum"},
		"a position": {"UPDATE @.canisters SET position = 7 WHERE conversation = 1 AND position = 1", "its length is 3, but it has 8"},
		"swapped": {
			"UPDATE @.canisters SET position = 10 WHERE conversation = 1 AND position = 0; UPDATE @.canisters SET position = 0 WHERE conversation = 1 AND position = 1; UPDATE @.canisters SET position = 1 WHERE conversation = 1 AND position = 10", "position 0: the checksum",
		},
		"a row":               {"DELETE FROM @.canisters WHERE conversation = 1 AND position = 1", "position 1: the row is missing"},
		"the last row":        {"DELETE FROM @.canisters WHERE conversation = 1 AND position = 2", "its length is 3, but it has 2"},
		"a bit of a content":  {"UPDATE @.contents SET body = overlay(body PLACING 'X' FROM 100 FOR 1)", "the hash of a long content is"},
		"a content":           {"DELETE FROM @.contents", "1 long contents, but only 0 of them exist"},
		"a part":              {"DELETE FROM @.parts", "1 long contents, but only 0 of them exist"},
		"the place of a part": {"UPDATE @.parts SET place = 1", "position 2: "},
		"a length":            {"UPDATE @.conversations SET length = 2 WHERE key = 1", "its length is 2, but it has 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			storetest.Add(t, s, "talk", 0, "zero", "one", long)
			storetest.Add(t, s, "other", 0, "whole")
			for statement := range strings.SplitSeq(try.harm, "; ") {
				harm(t, s, statement)
			}
			lines, err := storetest.Read(t.Context(), s, "talk", 0)
			corrupt, ok := errors.AsType[*history.CorruptError](err)
			if !ok || corrupt.Conversation != "talk" || !strings.Contains(err.Error(), try.want) {
				t.Errorf("%d lines, and the error is %v, want %q", len(lines), err, try.want)
			}
			if got := storetest.Texts(t, s, "other"); len(got) != 1 {
				t.Errorf("the other conversation has %q", got)
			}
		})
	}
}

// A content that is damaged is mended by who appends it again; an append to a
// location whose row is missing is refused.
func TestMended(t *testing.T) {
	s := open(t)
	long := strings.Repeat("long ", 1000)
	storetest.Add(t, s, "talk", 0, long)
	harm(t, s, "UPDATE @.contents SET body = 'x'")
	if _, err := storetest.Read(t.Context(), s, "talk", 0); err == nil {
		t.Error("the damage is not seen")
	}
	storetest.Add(t, s, "other", 0, long)
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 || got[0] != long {
		t.Errorf("it is not mended: %d", len(got))
	}
	harm(t, s, "DELETE FROM @.canisters WHERE conversation = 1")
	err := s.Append(t.Context(), "talk", 0, storetest.Says("c0", long))
	if corrupt, ok := errors.AsType[*history.CorruptError](err); !ok || corrupt.Conversation != "talk" {
		t.Errorf("an append over a missing row: %v", err)
	}
	harm(t, s, "INSERT INTO @.canisters VALUES (2, 1, '', '', '', '', 0, 0, 0)")
	err = s.Append(t.Context(), "other", 1, storetest.Says("c1", "x"))
	if corrupt, ok := errors.AsType[*history.CorruptError](err); !ok || corrupt.Conversation != "other" {
		t.Errorf("an append where a row is already: %v", err)
	}
}

// A read-only role can read, and its errors say what it may not do. A role that cannot
// create tables is sufficient if they exist.
func TestRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openAt(t, dsn, nil)
	storetest.Add(t, s, "talk", 0, "before")
	name := strings.ReplaceAll(value[string](t, s, "SELECT current_database()"), "test_", "role_")
	harm(t, s, "CREATE ROLE "+name+" LOGIN PASSWORD 'x'")
	defer harm(t, s, "DROP OWNED BY "+name+"; DROP ROLE "+name)
	theirs := as(t, dsn, name, "x", "", "")
	if _, err := Open(t.Context(), theirs, nil); err == nil || !strings.Contains(err.Error(), "the role lacks a right") {
		t.Errorf("without any right: %v", err)
	}
	if _, err := Open(t.Context(), theirs, &Options{Schema: "fresh"}); err == nil || !strings.Contains(err.Error(), "the role lacks a right") {
		t.Errorf("where a schema is to be made: %v", err)
	}
	harm(t, s, "GRANT USAGE ON SCHEMA consort TO "+name)
	harm(t, s, "GRANT SELECT ON ALL TABLES IN SCHEMA consort TO "+name)
	reader := openAt(t, theirs, nil)
	if got := storetest.Texts(t, reader, "talk"); len(got) != 1 || storetest.Find(t, reader, history.Filter{Text: "before"}) != "talk" {
		t.Errorf("a role that may read has %q", got)
	}
	refused := func(what string, s *Store, want string) {
		t.Helper()
		for name, err := range map[string]error{
			"Append": s.Append(t.Context(), "talk", 1, storetest.Says("c1", "x")), "a new one": s.Append(t.Context(), "new", 0, storetest.Says("c1", "x")),
			"Fork": s.Fork(t.Context(), "talk", 1, "fork"), "Delete": s.Delete(t.Context(), "talk", history.AnyLength),
			"Describe": s.Describe(t.Context(), "talk", history.Change{}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v", name, what, err)
			}
		}
	}
	refused("the right to read", reader, "the role lacks a right that it needs")
	harm(t, s, "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA consort TO "+name)
	writer := openAt(t, theirs, nil) // docs/stores.md: that is all it needs
	storetest.Add(t, writer, "talk", 1, "after", strings.Repeat("long", 1000))
	if err := errors.Join(writer.Fork(t.Context(), "talk", 3, "fork"), writer.Describe(t.Context(), "fork", history.Change{}),
		writer.Delete(t.Context(), "fork", history.AnyLength), writer.Delete(t.Context(), "fork", history.AnyLength)); err != nil {
		t.Error(err)
	}
	harm(t, s, "ALTER ROLE "+name+" SET default_transaction_read_only = on")
	refused("a read-only database", openAt(t, theirs, nil), "is read-only")
	if got := storetest.Texts(t, s, "talk"); len(got) != 3 {
		t.Errorf("there are %d canisters, want 3", len(got))
	}
	harm(t, s, "DROP TABLE @.canisters")
	refusal := s.Append(t.Context(), "talk", 3, storetest.Says("c3", "x"))
	if refusal == nil || !strings.Contains(refusal.Error(), "a table of the conversations is missing") {
		t.Error(refusal)
	}
}

// A caller that waits for another transaction leaves when its context or its time ends,
// and does not block others afterwards.
func TestWaitingForALock(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "x")
	other, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), s.sql("BEGIN; SELECT FROM @.conversations WHERE id = 'talk' FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, "talk", 1, storetest.Says("c1", "impatient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one is told %v", err)
	}
	s.timeout = 300 * time.Millisecond
	err = s.Append(t.Context(), "talk", 1, storetest.Says("c1", "patient"))
	s.timeout = time.Minute
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within Options.Timeout, 300ms") {
		t.Errorf("the patient one is told %v", err)
	}
	storetest.Add(t, s, "other", 0, "another conversation is not concerned")
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 {
		t.Errorf("readers have %q", got)
	}
	for _, conn := range s.pool.AcquireAllIdle(t.Context()) { // a late cancellation would affect the next query
		if conn.Conn().PgConn().CustomData()[cancelled] != nil {
			t.Error("a connection with a cancelled statement is used again")
		}
		conn.Release()
	}
	until(t, "nobody waits in the server", func() bool {
		return value[int](t, s, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0
	})
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	other.Release()
	storetest.Add(t, s, "talk", 1, "now")
}

// A deadline that passes while a write waits for a connection does not close the connections.
func TestDeadlineWhileAllConnectionsAreInUse(t *testing.T) {
	t.Parallel()
	s := openAt(t, pgtest.DSN(t), &Options{Connections: 1})
	storetest.Add(t, s, "talk", 0, "x")
	busy, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := s.pool.Stat().NewConnsCount()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, "talk", 1, storetest.Says("c1", "impatient")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one is told %v", err)
	}
	s.timeout = 100 * time.Millisecond
	if err := s.Append(t.Context(), "talk", 1, storetest.Says("c1", "impatient")); !errors.Is(err, errSilent) {
		t.Errorf("one without a deadline is told %v", err)
	}
	s.timeout = time.Minute
	busy.Release()
	storetest.Add(t, s, "talk", 1, "patient")
	if after := s.pool.Stat().NewConnsCount(); after != before {
		t.Errorf("the pool has made %d connections, want %d", after, before)
	}
}

// A program that is stopped in the middle of an append holds the others up for
// 5 s, and is told when it wakes up.
func TestStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	s := open(t)
	storetest.Add(t, s, "talk", 0, "x")
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	sleeper := &writer{queryer: queryer{s, conn}, conn: conn}
	var key int64
	if err := sleeper.Begin(t.Context(), func(row sqlstore.Scanner) error { return row.Scan(&key) },
		"SELECT key FROM @.conversations WHERE id = 'talk' FOR NO KEY UPDATE"); err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, "talk", 1, "others go on")
	row := must(sqlstore.RowOf(1, storetest.Says("late", "late"), []byte(`{"kind":"user","id":"late"}`)))
	if err = sleeper.Insert(t.Context(), sqlstore.Extent{Key: key}, []sqlstore.Row{row}); err == nil {
		err = sleeper.Commit(t.Context())
	}
	err = s.explain(t.Context(), "talk", err)
	if err == nil || !strings.Contains(err.Error(), "the server ended the transaction") && !strings.Contains(err.Error(), "the connection was lost") {
		t.Errorf("who wakes up is told %v", err)
	}
	if got := storetest.Texts(t, s, "talk"); len(got) != 2 || got[1] != "others go on" {
		t.Errorf("there is %q", got)
	}
}

// Canisters with any bytes where they may stand come back as they were.
func TestAnyBytes(t *testing.T) {
	s := open(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	list := []canister.Canister{
		storetest.Says("nul\x00 and \xff", "\x00 \xff \ufffd \u2028"+string(all)),
		canister.User{Head: canister.Head{ID: "long"}, Content: canister.Texts(strings.Repeat(string(all), 20), "short")},
	}
	for range 2 { // the second time they are there
		if err := s.Append(t.Context(), "talk", 0, list...); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := storetest.Read(t.Context(), s, "talk", 0)
	if err != nil || len(lines) != 2 {
		t.Fatal(len(lines), err)
	}
	for i, c := range list {
		if want, _ := canister.Marshal(c); string(want) != lines[i] {
			t.Errorf("canister %d is %q, want %q", i, lines[i], want)
		}
	}
}
