// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// An export goes through a symbolic link, a pipe and the path of standard output,
// and replaces none of them.
func TestExportReplacesNeitherLinkNorPipe(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	folder := t.TempDir()
	real, link, pipe := filepath.Join(folder, "real"), filepath.Join(folder, "link"), filepath.Join(folder, "pipe")
	if err := errors.Join(os.WriteFile(real, []byte("old"), 0o600), os.Symlink("real", link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Skip(err)
	}
	read := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- string(text)
	}()
	export := func(to string) outcome {
		return consort(t, "history", "export", "talk", "--config", path, "-o", to).expect(t, exit.Done)
	}
	export(link)
	export(pipe)
	printed := export("/dev/stdout").stdout
	text, err := os.ReadFile(real)
	if err != nil || !strings.Contains(string(text), "It snows.") {
		t.Errorf("the target of the link has %q, %v", text, err)
	}
	if through := <-read; through != string(text) || printed != string(text) {
		t.Errorf("through the pipe came %q, on standard output %q", through, printed)
	}
	for name, kind := range map[string]fs.FileMode{link: fs.ModeSymlink, pipe: fs.ModeNamedPipe} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s has become %v, %v", name, info.Mode(), err)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 3 {
		t.Errorf("left are %v", left)
	}
}
