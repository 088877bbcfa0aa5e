// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
)

// What goes wrong when a configuration is put to use is reported with the place of
// its key, also when the file looked right.
func TestAssembleSaysWhere(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "consort.toml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts.json", "{\"mcpServers\": {\n\"far\": {\"command\": \"x\"}}}")
	write("broken.json", "{")
	text := `import = ["hosts.json"]
[audit]
file = "none/audit.jsonl"
[mcp.near]
transport = "stdio"
command = ["x"]
pin = "broken.json"
[grpc.farther]
address = "localhost:1"
[grpc.farther.tls]
ca = "none.pem"
[serve]
grpc = "127.0.0.1:0"
token = "abcdefghijklmnop"
[serve.grpc_tls]
certificate = "none.pem"
key = "none.key"
`
	cfg, err := config.Parse(name, []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MCP["far"].Transport = "pigeon"
	_, err = config.Assemble(cfg, nil)
	var all *config.Error
	if !errors.As(err, &all) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Assemble: %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		name + ":3:1: audit.file: ",
		name + ":7:1: mcp.near.pin: ",
		name + ":10:15: grpc.farther.tls: ",
		name + ":15:8: serve.grpc_tls: ",
		filepath.Join(folder, "hosts.json") + `:2:1: mcp.far: unknown transport "pigeon"`,
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line begins with %q:\n%v", want, err)
		}
	}
	if len(all.Problems) != 5 {
		t.Errorf("%d problems:\n%v", len(all.Problems), err)
	}
}

// So is what goes wrong when the store of conversations is opened, without its secrets.
func TestOpenHistorySaysWhere(t *testing.T) {
	t.Setenv("DATABASE", "postgres://me:pass-4711@127.0.0.1:1/x?connect_timeout=2")
	for text, want := range map[string]string{
		"[history]\npath = \"/dev/null/none/h.db\"\n":                  "consort.toml:2:1: history.path: ",
		"[history]\nstore = \"postgres\"\n\n dsn = \"env:DATABASE\"\n": "consort.toml:4:2: history.dsn: ",
	} {
		cfg, err := config.Parse("consort.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cfg.OpenHistory(t.Context())
		if got := cfg.Locate(err); got == nil || !strings.HasPrefix(got.Error(), want) || strings.Contains(got.Error(), "pass-4711") {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
