// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/testing/storetest"
)

// asNobody does something with the rights that a stranger has to files: this
// thread's alone change, and only as far as files go.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do() // who is not root has no right to what may not be written
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setfsuid(0)
	do()
}

// A file, or a folder, that may not be written is an error that says so, and the
// conversations in it stay.
func TestOpeningWhatMayOnlyBeRead(t *testing.T) {
	folder, err := os.MkdirTemp("", "sqlite") // where strangers may go, other than in t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "talks.db")
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, "talk", 0, "before")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path         string
		file, folder os.FileMode
		want         string
	}{
		"file":            {path, 0o444, 0o777, "cannot be written"},
		"folder":          {path, 0o666, 0o555, "cannot be written"},
		"new in a folder": {filepath.Join(folder, "new.db"), 0o666, 0o555, "permission denied"},
	} {
		if err := os.Chmod(path, test.file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder, test.folder); err != nil {
			t.Fatal(err)
		}
		asNobody(t, func() {
			s, err := Open(test.path, nil)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Texts(t, openAt(t, path, nil), "talk"); len(got) != 1 {
		t.Errorf("there is %q", got)
	}
}
