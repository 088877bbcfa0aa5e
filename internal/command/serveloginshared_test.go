// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// TestServeLoginsOfTwoMachines: of two gateways with one database, one uses the login that a
// person made at the other one. A machine with another key does not start, and a gateway with
// another scope has other logins.
func TestServeLoginsOfTwoMachines(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		loginsOfTwoMachines(t, "[history]\npath = \""+filepath.Join(t.TempDir(), "talks.db")+"\"\n[logins]\nstore = \"history\"\n")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Setenv("DATABASE_URL", pgtest.DSN(t))
		loginsOfTwoMachines(t, "[history]\nstore = \"postgres\"\ndsn = \"env:DATABASE_URL\"\n[logins]\n")
	})
}

func loginsOfTwoMachines(t *testing.T, tables string) {
	t.Setenv("CONSORT_LOGIN_KEY", strings.Repeat("k", 32))
	asked, path := ownLogins(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = file(t, string(text)+tables)
	logIn(t, path)
	one := serveWith(t, run{env: []string{"XDG_STATE_HOME=" + t.TempDir()}}, true, "--config", path)
	other := serveWith(t, run{env: []string{"XDG_STATE_HOME=" + t.TempDir()}}, true, "--config", path)
	p := newVisitor(t)
	ada := one.visiting(adasToken, func(link string) string {
		go func() {
			if status, text := p.open(link, adasToken); status != http.StatusOK {
				t.Errorf("the page: %d %s", status, text)
			}
		}()
		return "accept"
	})
	said := called(t, ada, "notes__write", "{}")
	if again := called(t, other.connect(adasToken), "notes__write", "{}"); !strings.HasPrefix(said, "login ") || again != said {
		t.Errorf("at one: %s, at the other: %s", said, again)
	}
	if n := asked.Count("/authorize"); n != 2 { // the user of the program, and ada
		t.Errorf("people were asked %d times", n)
	}
	other.signal(os.Interrupt)
	io.Copy(io.Discard, other.said)
	if err := other.cmd.Wait(); err != nil {
		t.Error(err)
	}
	one.signal(os.Interrupt)
	one.ends(exit.Done)
	if list := consort(t, "logins", "--config", path).expect(t, exit.Done); !strings.Contains(list.stdout, "notes") {
		t.Error(list.stdout)
	}
	apart := file(t, string(text)+tables+"scope = \"another gateway\"\n")
	if list := consort(t, "logins", "--config", apart).expect(t, exit.Done); !strings.Contains(list.stdout, "needs login") {
		t.Errorf("with another scope: %s", list.stdout)
	}
	t.Setenv("CONSORT_LOGIN_KEY", strings.Repeat("x", 32))
	refused := consort(t, "serve", "--config", path).expect(t, exit.Usage)
	contains(t, "another key", refused.stderr, "another key", "CONSORT_LOGIN_KEY")
}
