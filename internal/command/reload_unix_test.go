// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// A configuration that is a pipe is read once, and that is said.
func TestServeFromAPipe(t *testing.T) {
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
	waitFor(t, "a refusal", func() bool { return strings.Contains(s.stderr.String(), "could not be read twice") })
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}
