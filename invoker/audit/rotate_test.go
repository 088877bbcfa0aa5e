// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/invoker/audit"
)

// openFile opens a file for a test that renames it while it is open.
func openFile(t *testing.T) (file *audit.File, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an open file can be neither renamed nor removed here")
	}
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := audit.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		open, _ := os.ReadDir("/proc/self/fd") // where there is such a thing
		for _, one := range open {
			if to, _ := os.Readlink("/proc/self/fd/" + one.Name()); strings.HasPrefix(to, filepath.Dir(path)) {
				t.Errorf("%s is still open", to)
			}
		}
	})
	return file, path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What becomes of the file while it is open: a record that was kept is where
// the path leads when it comes.
func TestFileIsFollowed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(path string) error
		before string // records in the file that was renamed, if there is one
		after  string // in the directory of the path
	}{
		"renamed":  {func(path string) error { return os.Rename(path, path+".1") }, "first", "second"},
		"removed":  {os.Remove, "", "second"},
		"cut":      {func(path string) error { return os.Truncate(path, 0) }, "", "second"},
		"replaced": {func(path string) error { return os.Rename(other(path), path) }, "", "other,second"},
		"a link": {func(path string) error {
			other(path)
			if err := os.Rename(path, path+".1"); err != nil {
				return err
			}
			return os.Symlink(path+".other", path)
		}, "first", "other,second"},
	} {
		t.Run(name, func(t *testing.T) {
			file, path := openFile(t)
			must(t, file.Record(t.Context(), &audit.Record{Tool: "first"}))
			must(t, test.change(path))
			must(t, file.Record(t.Context(), &audit.Record{Tool: "second"}))
			if test.before != "" {
				if names, errs := tools(t, path+".1"); strings.Join(names, ",") != test.before || errs != nil {
					t.Errorf("the renamed file has %v, %v", names, errs)
				}
			}
			if names, errs := tools(t, path); strings.Join(names, ",") != test.after || errs != nil {
				t.Errorf("the file has %v, %v; want %s", names, errs, test.after)
			}
			if info, err := os.Stat(path); err != nil || name != "a link" && name != "replaced" && info.Mode().Perm() != 0o600 {
				t.Errorf("the file has %v (%v), want 0600", info.Mode(), err)
			}
		})
	}
}

// other creates another file of records next to a path.
func other(path string) string {
	line, _ := audit.Record{Tool: "other"}.MarshalJSON()
	if err := os.WriteFile(path+".other", append(line, '\n'), 0o600); err != nil {
		panic(err)
	}
	return path + ".other"
}

// A file that cannot be made anew is an error for each record, until it can.
func TestFileCannotBeFollowed(t *testing.T) {
	file, path := openFile(t)
	folder := filepath.Dir(path)
	must(t, os.Rename(folder, folder+".1"))
	if err := file.Record(t.Context(), &audit.Record{Tool: "lost"}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the folder is gone: %v", err)
	}
	must(t, os.MkdirAll(path, 0o700))
	if err := file.Record(t.Context(), &audit.Record{Tool: "lost"}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder has taken its place: %v", err)
	}
	must(t, os.Remove(path))
	must(t, file.Record(t.Context(), &audit.Record{Tool: "kept"}))
	if names, errs := tools(t, path); len(names) != 1 || errs != nil {
		t.Errorf("the file has %v, %v", names, errs)
	}
}

// The process may change its directory.
func TestFileIsFollowedFromElsewhere(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	file, err := audit.OpenFile("audit.jsonl", nil)
	must(t, err)
	t.Chdir(t.TempDir())
	must(t, file.Record(t.Context(), &audit.Record{Tool: "first"}))
	must(t, file.Close())
	if names, _ := tools(t, filepath.Join(folder, "audit.jsonl")); len(names) != 1 {
		t.Errorf("the file has %v", names)
	}
}

// A line that another process could not complete is ended, too.
func TestFileTornByAnother(t *testing.T) {
	file, path := openFile(t)
	must(t, file.Record(t.Context(), &audit.Record{Tool: "first"}))
	another, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = another.WriteString(`{"time":"2026-`)
	must(t, err)
	must(t, another.Close())
	must(t, file.Record(t.Context(), &audit.Record{Tool: "second"}))
	names, errs := tools(t, path)
	if strings.Join(names, ",") != "first,second" || len(errs) != 1 {
		t.Errorf("the file has %v, %v", names, errs)
	}
}

// The file is renamed over and over while many records come: each is in one
// file.
func TestFileRotatedMeanwhile(t *testing.T) {
	file, path := openFile(t)
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for n := range 50 {
				if err := file.Record(t.Context(), &audit.Record{Tool: fmt.Sprint(writer, " ", n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	paths := []string{path}
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
			rotated := fmt.Sprint(path, ".", len(paths))
			if os.Rename(path, rotated) == nil {
				paths = append(paths, rotated)
			}
		}
	}
	must(t, file.Record(t.Context(), &audit.Record{Tool: "last"}))
	times := map[string]int{}
	for _, path := range paths {
		names, errs := tools(t, path)
		if errs != nil {
			t.Error(errs)
		}
		for _, name := range names {
			times[name]++
		}
	}
	for name, n := range times {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if len(times) != 401 || len(paths) < 3 {
		t.Errorf("%d records in %d files, want 401", len(times), len(paths))
	}
}
