// SPDX-License-Identifier: Apache-2.0

package writefile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/writefile"
)

func TestLock(t *testing.T) {
	if !filelock.Supported {
		t.Skip("there are no locks on this system")
	}
	path := filepath.Join(t.TempDir(), "file")
	unlock, err := writefile.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writefile.TryLock(path); err == nil {
		t.Error("the file was locked twice")
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := writefile.LockContext(ctx, path); !errors.Is(err, stopped) {
		t.Errorf("LockContext = %v", err)
	}
	unlock()
	again, err := writefile.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Errorf("the lock cannot be removed while it is held: %v", err)
	}
	again()
	if _, err := writefile.Lock(filepath.Join(path, "none", "file")); err == nil {
		t.Error("a lock in no folder")
	}
}
