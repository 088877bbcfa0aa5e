// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/invoker/audit"
)

// tools reads a file and returns the tools of its records, and its errors.
func tools(t testing.TB, path string) (names []string, errs []error) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for record, err := range audit.Read(file) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, record.Tool)
	}
	return names, errs
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for round := range 2 {
		file, err := audit.OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if err := file.Record(t.Context(), &audit.Record{Tool: fmt.Sprint(round, n), Code: "OK"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(file.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		if err := file.Record(t.Context(), &audit.Record{}); !errors.Is(err, audit.ErrClosed) {
			t.Errorf("after Close, the error is %v", err)
		}
	}
	names, errs := tools(t, path)
	if got := strings.Join(names, ","); got != "0 0,0 1,0 2,1 0,1 1,1 2" || errs != nil {
		t.Errorf("the records are %s; %v", got, errs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v (%v), want 0600", info.Mode(), err)
	}
}

// Many records at once, from several openings of one file: all are there, and
// none is mixed with another.
func TestFileConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	for _, opts := range []*audit.FileOptions{nil, {NoSync: true}} {
		file, err := audit.OpenFile(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 50 {
			all.Go(func() {
				err := file.Record(t.Context(), &audit.Record{Tool: fmt.Sprint(n), Error: strings.Repeat("x", 100*n)})
				if err != nil {
					t.Error(err)
				}
			})
		}
		defer file.Close()
	}
	all.Wait()
	if names, errs := tools(t, path); len(names) != 100 || errs != nil {
		t.Errorf("there are %d records, want 100; %v", len(names), errs)
	}
}

// Close lets the records under way be kept, and tells the others.
func TestFileClosedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := audit.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	kept := 0
	for range 50 {
		all.Go(func() {
			switch err := file.Record(t.Context(), &audit.Record{Tool: "t"}); {
			case err == nil:
				mu.Lock()
				kept++
				mu.Unlock()
			case !errors.Is(err, audit.ErrClosed):
				t.Error(err)
			}
		})
		all.Go(func() {})
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if names, errs := tools(t, path); len(names) != kept || errs != nil {
		t.Errorf("there are %d records, and %d were taken; %v", len(names), kept, errs)
	}
}

// A line that was not completed is ended, and every other record can be read.
func TestFileWithTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	whole := line(t, audit.Record{Tool: "first", Code: "OK"}) + "\n"
	for cut := range len(whole) {
		if err := os.WriteFile(path, []byte(whole+whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := audit.OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Record(t.Context(), &audit.Record{Tool: "last"}); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		names, errs := tools(t, path)
		want, broken := "first,last", 1
		switch cut {
		case 0:
			broken = 0
		case len(whole) - 1: // it lacks the newline alone
			want, broken = "first,first,last", 0
		}
		if got := strings.Join(names, ","); got != want || len(errs) != broken {
			t.Fatalf("cut at %d, the records are %s, want %s; %v", cut, got, want, errs)
		}
		for _, err := range errs {
			if !strings.Contains(err.Error(), "line 2 is not a record") {
				t.Errorf("the error is %v", err)
			}
		}
	}
}

func TestOpenFileFails(t *testing.T) {
	folder := t.TempDir()
	for path, want := range map[string]string{
		folder:                                   "is not a regular file",
		filepath.Join(folder, "none", "a.jsonl"): "no such file",
		os.DevNull:                               "is not a regular file",
	} {
		if file, err := audit.OpenFile(path, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, file, err)
		}
	}
}

func TestFileRefusesWhatHasNoForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := audit.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Record(t.Context(), &audit.Record{Arguments: []byte("{")}); err == nil {
		t.Error("a record that is no JSON was taken")
	}
	if names, errs := tools(t, path); names != nil || errs != nil {
		t.Errorf("the file has %v, %v", names, errs)
	}
}
