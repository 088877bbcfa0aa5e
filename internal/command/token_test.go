// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// What consort token new prints is what the configuration needs.
func TestTokenNew(t *testing.T) {
	t.Parallel()
	out := consort(t, "token", "new", "ada", "--expires", "90d").expect(t, exit.Done).stdout
	_, lines, ok := strings.Cut(out, "consort serve:\n\n")
	if !ok {
		t.Fatal(out)
	}
	file := filepath.Join(t.TempDir(), "consort.toml")
	if err := os.WriteFile(file, []byte("[serve]\nhttp = \"127.0.0.1:0\"\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	consort(t, "check", "--config", file).expect(t, exit.Done)
	var token struct{ Name, Token, TokenHash, Expires string }
	if err := json.Unmarshal([]byte(consort(t, "token", "new", "ada", "--json").expect(t, exit.Done).stdout), &token); err != nil ||
		token.Name != "ada" || token.Token == "" || token.Expires != "" {
		t.Errorf("%+v, %v", token, err)
	}
	contains(t, "a bad day", consort(t, "token", "new", "ada", "--expires", "soon").expect(t, exit.Usage).stderr, `"soon"`, "90d")
	consort(t, "token", "new").expect(t, exit.Usage)
	for _, line := range []string{"token nwe ada", "completion bsh", "history lst", "pins acept", "approvals revoek", "help nwe", "nwe"} {
		out := consort(t, strings.Fields(line)...).expect(t, exit.Usage)
		contains(t, line, out.stderr, "unknown command")
	}
	for _, line := range []string{"token", "completion", "history", "help token"} {
		contains(t, line, consort(t, strings.Fields(line)...).expect(t, exit.Done).stdout, "Usage:")
	}
	consort(t, "token", "new", "ada", "--config", file).expect(t, exit.Usage)
}
