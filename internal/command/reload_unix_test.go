// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
)

// A configuration that is a pipe is read once, and that is said.
func TestServeFromAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "consort.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(pipe, []byte("[serve]\nhttp = \"127.0.0.1:0\"\n"+clientAda+"\n"+atlas(0)), 0o600)
	s := serve(t, true, "--config", pipe)
	if got := post(t, s.url, ""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	if names := toolNames(t, s.connect("ada-0123456789abcdef")); len(names) == 0 {
		t.Error("there are no tools")
	}
	contains(t, "standard error", s.stderr.String(), "is not a regular file: it is read only now")
	s.signal(syscall.SIGHUP)
	waitFor(t, "a refusal", func() bool { return strings.Contains(s.stderr.String(), "cannot be read a second time") })
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// Imported files are watched whatever names them, and one that becomes a pipe keeps neither
// a reload nor the end of the process waiting.
func TestReloadOfImports(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"a file with a byte order mark", "a flag", "a flag alone"} {
		folder := t.TempDir()
		host := writeAt(t, `{"mcpServers": {}}`, folder, "host.json")
		text, args := "\ufeffimport = [\"host.json\"]\n", []string(nil)
		if by == "a flag" {
			text, args = "", []string{"--set", fmt.Sprintf("import=[%q]", host)}
		}
		path := writeAt(t, text+"[log]\nlevel = \"info\"\n[serve]\nhttp = \"127.0.0.1:0\"\n", folder, "reloaded.toml")
		args = append(args, "--config", path)
		if by == "a flag alone" {
			args = []string{"--http", "127.0.0.1:0", "--set", "log.level='info'", "--set", fmt.Sprintf("import=[%q]", host)}
		}
		s := serveWith(t, run{limit: 10 * time.Minute, dir: folder}, true, args...)
		added := fmt.Sprintf(`{"mcpServers": {"atlas": {"command": %q, "args": ["atlas"]}}}`, testserver)
		writeAt(t, added, folder, "host.json")
		waitFor(t, "a change by "+by, func() bool { return strings.Contains(s.stderr.String(), `"trigger": "file", "added": ["atlas"]`) })
		pipe := filepath.Join(folder, "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(pipe, host); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGHUP)
		waitFor(t, "a refusal by "+by, func() bool { return strings.Contains(s.stderr.String(), "cannot be read a second time") })
		s.signal(syscall.SIGTERM)
		s.ends(exit.Done)
	}
}
