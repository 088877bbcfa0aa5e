// SPDX-License-Identifier: Apache-2.0

package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ask returns the result of a query, once the server answers.
func ask(t *testing.T, dsn, query string) (answer string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&answer)
	return answer, err
}

func must(t *testing.T, dsn, query string) string {
	t.Helper()
	answer, err := ask(t, dsn, query)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Each test has a separate database, which is deleted afterwards.
func TestDSN(t *testing.T) {
	first, second := pgtest.DSN(t), pgtest.DSN(t)
	var third string
	t.Run("inner", func(t *testing.T) { third = pgtest.DSN(t); must(t, third, "SELECT 'here'") })
	if one, two := must(t, first, "SELECT current_database()"), must(t, second, "SELECT current_database()"); one == two {
		t.Errorf("both are in %s", one)
	}
	_, err := ask(t, third, "SELECT 'still here'")
	if gone, ok := errors.AsType[*pgconn.PgError](err); !ok || gone.Code != "3D000" {
		t.Errorf("the database of a test that has ended: %v", err)
	}
}

// What was committed is there after each end of the server, at the same address.
func TestServerEndsAndStarts(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.DSN(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'kept' AS what"); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(testing.TB){"stop": server.Stop, "kill": server.Kill} {
		end(t)
		if _, err := ask(t, dsn, "SELECT ''"); err == nil {
			t.Errorf("%s: the server answers", name)
		}
		server.Start(t)
		if got := must(t, dsn, "SELECT what FROM kept"); got != "kept" {
			t.Errorf("%s: %q", name, got)
		}
	}
	server.Restart(t)
	address, _ := url.Parse(dsn)
	local := "host=" + server.Socket() + " port=" + address.Port() + " user=consort dbname=" + strings.Trim(address.Path, "/") + " password="
	password, _ := address.User.Password()
	if got := must(t, local+password, "SELECT what FROM kept"); got != "kept" {
		t.Errorf("by the socket: %q", got)
	}
	if _, err := ask(t, local+"wrong", "SELECT ''"); err == nil {
		t.Error("the password is not looked at")
	}
}

// A process that panics, or is killed, leaves neither a server nor its files.
func TestNothingIsLeft(t *testing.T) {
	if os.Getenv("CONSORT_POSTGRES") != "" {
		t.Skip("there is a server already, which stays")
	}
	pgtest.DSN(t) // skips the test where there is no PostgreSQL
	for _, end := range []string{"panic", "kill"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndsBadly$")
		cmd.Env = append(os.Environ(), "PGTEST_END="+end)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan()
		socket := lines.Text()
		if end == "kill" {
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err == nil || socket == "" {
			t.Fatalf("%s: %q, %v", end, socket, err)
		}
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // another process is awaited
			if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
				break
			}
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%s: %s is left", end, socket)
			}
		}
	}
}

// TestEndsBadly is what ends badly there.
func TestEndsBadly(t *testing.T) {
	end := os.Getenv("PGTEST_END")
	if end == "" {
		t.Skip("this is for TestNothingIsLeft")
	}
	os.Stdout.WriteString(pgtest.Start(t).Socket() + "\n")
	if end == "panic" {
		go panic("as was asked for")
	}
	select {}
}
