// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reload_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/reload"
	"github.com/consort-go/consort/internal/writefile"
)

// A pipe is not read, since it could not be read again.
func TestReadOfAPipe(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe.toml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	link := filepath.Join(folder, "link.toml")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	importing := write(t, filepath.Join(folder, "consort.toml"), "import = [\"pipe.toml\"]\n")
	for path, want := range map[string]string{pipe: pipe, link: link, importing: pipe, write(t, filepath.Join(folder, "plain.toml"), "a = 1"): ""} {
		if got := reload.Read(path, loader(path)).Special(); got != want {
			t.Errorf("of %s, %q is special, want %q", path, got, want)
		}
	}
}

// The socket of a process that lives is not removed, also if nothing listens there now.
func TestAskKeepsLiveSockets(t *testing.T) {
	folder, config := runFolder(t), filepath.Join(t.TempDir(), "consort.toml")
	ctx, cancel := context.WithCancel(t.Context())
	closed, err := reload.Listen(ctx, folder, config, func(context.Context) reload.Outcome { return reload.Outcome{} })
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, strings.Replace(sockets(t, folder)[0], ".sock", "x.sock", 1))
	cancel()
	closed()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	unlock, err := writefile.Lock(socket)
	if err != nil {
		t.Fatal(err)
	}
	for _, lives := range []bool{true, false} {
		if !lives {
			unlock()
		}
		if found, err := reload.Ask(t.Context(), folder, config); err != nil || len(found) > 0 {
			t.Errorf("found are %v, %v", found, err)
		}
		if left := len(sockets(t, folder)) > 0; left != lives {
			t.Errorf("the process lives: %v; its socket is there: %v", lives, left)
		}
	}
}

// A folder that another user could put in the place of ours is not used.
func TestFolderThatOthersCanReplace(t *testing.T) {
	folder := runFolder(t)
	parent := filepath.Dir(folder)
	for mode, usable := range map[os.FileMode]bool{0o777: false, 0o770: false, 0o777 | os.ModeSticky: true, 0o755: true} {
		if err := os.Chmod(parent, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := reload.Ask(t.Context(), folder, "consort.toml"); (err == nil) != usable {
			t.Errorf("a parent with %v: %v", mode, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(folder, 65534, -1); err != nil {
			t.Skip(err)
		}
		if _, err := reload.Ask(t.Context(), folder, "consort.toml"); err == nil {
			t.Error("a folder of another user is used")
		}
	}
}
