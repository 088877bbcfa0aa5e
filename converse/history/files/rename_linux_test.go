// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
)

// opened returns the open descriptors of this process for files whose paths have a prefix.
func opened(t *testing.T, prefix string) (paths []string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if path, err := os.Readlink(filepath.Join("/proc/self/fd", one.Name())); err == nil && strings.HasPrefix(path, prefix) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Windows renames no folder that has an open file, and nothing over an open file. So nothing is
// open when a conversation is deleted and when the ledger is written anew; another writer has
// to wait nevertheless.
func TestNothingIsOpenDuringRename(t *testing.T) {
	dir := t.TempDir()
	kept(t, dir)
	here, there := open(t, dir), open(t, dir)
	here.closes, there.closes = true, true // as on Windows
	released := 0
	during := func(path string, write func(ctx context.Context) error) func(step string) {
		return func(step string) {
			if step != "released" {
				return
			}
			released++
			if paths := opened(t, path); len(paths) > 0 {
				t.Errorf("open are %q", paths)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := write(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another writer: %v", err)
			}
		}
	}
	here.step = during(filepath.Join(dir, "talk"), func(ctx context.Context) error {
		return there.Append(ctx, "talk", 4, says("on", "on we go"))
	})
	if err := here.Delete(t.Context(), "talk", 4); err != nil {
		t.Fatal(err)
	}
	conflict := new(history.ConflictError)
	if err := there.Append(t.Context(), "talk", 4, says("on", "on we go")); !errors.As(err, &conflict) || conflict.Length != 0 {
		t.Errorf("Append after the conversation was deleted: %v", err)
	}
	here.step = during(filepath.Join(dir, ".ledger.jsonl"), func(ctx context.Context) error {
		_, err := there.Ledger().Balances(ctx, "a")
		return err
	})
	here.sync = func(*os.File) error { return nil } // it takes long
	n := 0
	for ; released < 2 && n < 3000; n++ {
		if err := spends(t, here, fmt.Sprint("r", n)); err != nil {
			t.Fatal(err)
		}
	}
	if released != 2 {
		t.Errorf("%d renames", released)
	}
	account(t, there, int64(3*n))
}

// Where files stay open while they are renamed, a lock of another user hinders nobody.
func TestForeignRenameLock(t *testing.T) {
	dir := t.TempDir()
	kept(t, dir)
	if err := os.Symlink(".rename.lock", filepath.Join(dir, ".rename.lock")); err != nil { // cannot be opened
		t.Fatal(err)
	}
	s := open(t, dir)
	if err := s.Append(t.Context(), "talk", 4, says("on", "on we go")); err != nil {
		t.Error(err)
	}
	if err := spends(t, s, "r"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), "talk", history.AnyLength); err != nil {
		t.Error(err)
	}
}

// A store whose ledger is a link to that of another one waits until the other has written its
// ledger anew.
func TestLinkedLedgerDuringRename(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(one, ".ledger.jsonl"), filepath.Join(other, ".ledger.jsonl")); err != nil {
		t.Fatal(err)
	}
	here, there := open(t, one), open(t, other)
	here.sync = func(*os.File) error { return nil } // it takes long
	released := false
	here.step = func(step string) {
		if step != "released" {
			return
		}
		released = true
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := there.Ledger().Balances(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another writer: %v", err)
		}
	}
	n := 0
	for ; !released && n < 3000; n++ {
		if err := spends(t, here, fmt.Sprint("r", n)); err != nil {
			t.Fatal(err)
		}
	}
	if !released {
		t.Error("the ledger was not written anew")
	}
	account(t, there, int64(3*n))
}
