// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/jackc/pgx/v5"
)

// small mounts a disk of 16 MiB that PostgreSQL may use, if it may.
func small(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv("CONSORT_POSTGRES") != "" {
		t.Skip("only root can mount a small disk, for a server of this machine")
	}
	dir, err := os.MkdirTemp("", "pgfull-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=16m", "consort-test", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A server whose disk is full takes no append, says so, keeps all that it has
// taken, and goes on when there is room again.
func TestTheDiskOfTheServerIsFull(t *testing.T) {
	server := pgtest.Start(t) // which ends before its disk does
	dir := small(t)
	dsn := server.DSN(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	do := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	do("CREATE TABLESPACE small LOCATION '" + dir + "'")
	do("CREATE TABLE ballast TABLESPACE small AS SELECT repeat(md5(n::text), 60) FROM generate_series(1, 3000) n")
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("default_tablespace", "small")
	address.RawQuery = query.Encode()
	store, err := postgres.Open(t.Context(), address.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	length := 0
	for ; err == nil && length < 10_000; length++ {
		err = store.Append(t.Context(), "talk", length, long(length))
	}
	length-- // the one that was not taken
	if err == nil || !strings.Contains(err.Error(), "the server's disk is full") {
		t.Fatalf("after %d canisters: %v", length, err)
	}
	holds(t, store, length)
	do("DROP TABLE ballast")
	do("CHECKPOINT") // which frees the files
	if err := store.Append(t.Context(), "talk", length, long(length)); err != nil {
		t.Fatal(err)
	}
	holds(t, store, length+1)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	do(`DROP SCHEMA consort CASCADE`)
	do("DROP TABLESPACE small")
}

// long is a canister of 100 KiB that cannot be compressed.
func long(place int) canister.Canister {
	rng := rand.New(rand.NewPCG(uint64(place), 1))
	var text strings.Builder
	for text.Len() < 100<<10 {
		fmt.Fprintf(&text, "%016x", rng.Uint64())
	}
	return says(fmt.Sprint("c", place), text.String())
}

func holds(t *testing.T, store history.Store, want int) {
	t.Helper()
	n := 0
	for c, err := range store.Read(t.Context(), "talk", 0) {
		if err != nil || c.Header().ID != fmt.Sprint("c", n) || history.TextOf(c) != history.TextOf(long(n)) {
			t.Fatalf("canister %d: %v", n, err)
		}
		n++
	}
	if n != want {
		t.Errorf("there are %d canisters, want %d", n, want)
	}
}
