// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// Concurrent records share one fsync and its error, and nothing with later ones; Close
// waits for all of them.
func TestGroupCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		file, err := OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		disk, fsyncs := make(chan error), 0
		file.now.fsync = func() error { fsyncs++; return <-disk }
		results := make(chan error, 100)
		record := func(n int) {
			for range n {
				go func() { results <- file.Record(t.Context(), &Record{Tool: "t"}) }()
			}
			synctest.Wait()
		}
		record(1)
		record(20) // while the first is on its way to the disk
		closed := make(chan error, 1)
		if len(results) != 0 || fsyncs != 1 {
			t.Fatalf("%d records were kept before the disk had them, in %d fsyncs", len(results), fsyncs)
		}
		disk <- nil
		synctest.Wait()
		if err := <-results; err != nil || len(results) != 0 || fsyncs != 2 {
			t.Fatalf("the first: %v; %d others; %d fsyncs", err, len(results), fsyncs)
		}
		record(5)
		broken := errors.New("the disk is gone")
		disk <- broken
		synctest.Wait()
		if len(results) != 20 || fsyncs != 3 {
			t.Fatalf("%d of 20 have failed, in %d fsyncs", len(results), fsyncs)
		}
		for range 20 {
			if err := <-results; !errors.Is(err, broken) {
				t.Errorf("the error is %v", err)
			}
		}
		go func() { closed <- file.Close() }()
		synctest.Wait()
		if len(closed) != 0 || fsyncs != 3 {
			t.Error("Close did not wait")
		}
		disk <- nil
		synctest.Wait()
		disk <- nil // the one of Close
		if err := <-closed; err != nil || len(results) != 5 || fsyncs != 4 {
			t.Fatalf("Close: %v; %d of 5; %d fsyncs", err, len(results), fsyncs)
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// Without waiting for the disk, nothing does.
func TestNoSync(t *testing.T) {
	file, err := OpenFile(filepath.Join(t.TempDir(), "audit.jsonl"), &FileOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	fsyncs := 0
	file.now.fsync = func() error { fsyncs++; return nil }
	if err := file.Record(t.Context(), &Record{Tool: "t"}); err != nil || fsyncs != 0 {
		t.Errorf("%v, %d fsyncs", err, fsyncs)
	}
	if err := file.Close(); err != nil || fsyncs != 1 {
		t.Errorf("%v, %d fsyncs after Close", err, fsyncs)
	}
}

// A file that cannot be written is an error that names it.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.now.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Record(t.Context(), &Record{Tool: "t"}); err == nil {
		t.Error("a record was taken")
	}
	if err := file.Close(); err == nil {
		t.Error("Close says nothing")
	}
}
