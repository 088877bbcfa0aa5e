// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/installed"
	"github.com/consort-go/consort/internal/testing/ramdisk"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// timeout bounds the time to start or stop a server, and to create a database.
const timeout = time.Minute

// DSN creates a database for the test and returns its URL, which includes a password. The
// database is removed when the test ends.
func DSN(tb testing.TB) string {
	tb.Helper()
	if given := os.Getenv("CONSORT_POSTGRES"); given != "" && !installed.Hidden() {
		return database(tb, given)
	}
	start := inMemory
	if _, ok := tb.(*testing.B); ok {
		start = onDisk
	}
	server, err := start()
	need(tb, err)
	return database(tb, server.admin())
}

// The servers of this process, for tests and for benchmarks. This process never stops them:
// their keepers do so when the process has gone.
var (
	inMemory = sync.OnceValues(func() (*Server, error) { return start(ramdisk.Folder()) })
	onDisk   = sync.OnceValues(func() (*Server, error) { return start("") })
)

// Start starts a server for this test only; it ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := start("")
	need(tb, err)
	tb.Cleanup(func() {
		if err := server.close(); err != nil {
			tb.Error(err)
		}
	})
	return server
}

// DSN is like the function DSN, for this server, which must be running.
func (s *Server) DSN(tb testing.TB) string {
	tb.Helper()
	return database(tb, s.admin())
}

// need skips or fails the test if the server could not be started.
func need(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errMissing):
		installed.Missing(tb, err)
	default:
		tb.Fatal(err)
	}
}

var errMissing = errors.New("PostgreSQL is not installed: run .ci/install-servers, or set CONSORT_POSTGRES to the DSN of a server")

// programs returns the directory of initdb and postgres: the one in PATH, or else
// Debian's newest version.
func programs() (string, error) {
	if installed.Hidden() {
		return "", errMissing
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errMissing, err)
	}
	newest := slices.MaxFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // 9 is older than 15
		}
		return strings.Compare(a, b)
	})
	return filepath.Dir(newest), nil
}

// database creates a database on the server of the DSN. It is removed with the test if
// the server is then running.
func database(tb testing.TB, dsn string) string {
	tb.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	if err := execute(dsn, "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("pgtest: making a database: %v", err)
	}
	tb.Cleanup(func() {
		err := execute(dsn, "DROP DATABASE "+name+" WITH (FORCE)")
		if _, down := errors.AsType[*pgconn.ConnectError](err); err != nil && !down {
			tb.Errorf("pgtest: removing a database: %v", err)
		}
	})
	return in(dsn, name)
}

// in returns the DSN with another database.
func in(dsn, database string) string {
	if address, err := url.Parse(dsn); err == nil && address.Scheme != "" {
		address.Path = "/" + database
		return address.String()
	}
	return dsn + " dbname=" + database
}

// execute executes one statement on the server of the DSN.
func execute(dsn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
