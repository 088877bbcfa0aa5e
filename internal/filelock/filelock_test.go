// SPDX-License-Identifier: Apache-2.0

package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/filelock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// An exclusive lock excludes all others, and a shared lock excludes the exclusive ones.
func TestLocksExclude(t *testing.T) {
	if !filelock.Supported {
		t.Skip("there are no locks on this system")
	}
	for _, one := range []struct{ first, second, want bool }{
		{true, true, false}, {true, false, false}, {false, true, false}, {false, false, true},
	} {
		path := filepath.Join(t.TempDir(), "file")
		first, second := open(t, path), open(t, path)
		if locked, err := filelock.Try(first, one.first); !locked || err != nil {
			t.Fatalf("the first lock: %v, %v", locked, err)
		}
		if locked, err := filelock.Try(second, one.second); locked != one.want || err != nil {
			t.Errorf("exclusive %v, then %v: %v, %v", one.first, one.second, locked, err)
		}
	}
}

// The file can be read and written by others while it is locked.
func TestLockedFileCanBeUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if locked, err := filelock.Try(open(t, path), true); !locked || err != nil {
		t.Fatal(locked, err)
	}
	other := open(t, path)
	if _, err := other.WriteString("text"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// Wait ends with its context, and when the file that has the lock is closed.
func TestWait(t *testing.T) {
	if !filelock.Supported {
		t.Skip("there are no locks on this system")
	}
	path := filepath.Join(t.TempDir(), "file")
	first, second := open(t, path), open(t, path)
	if err := filelock.Wait(t.Context(), first, true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := filelock.Wait(ctx, second, true); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
	waited := make(chan error)
	go func() { waited <- filelock.Wait(t.Context(), second, true) }()
	first.Close()
	if err := <-waited; err != nil {
		t.Errorf("Wait = %v", err)
	}
	if _, err := filelock.Try(first, true); err == nil {
		t.Error("a closed file was locked")
	}
}
