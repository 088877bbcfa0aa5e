// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/redact"
)

func TestLineHistory(t *testing.T) {
	d := newDesk(t, 80, 24)
	for _, line := range []string{"one", "two words\nin two lines", "three", "three"} {
		d.history.remember(line)
	}
	d.keys("draft")
	for _, step := range []struct{ key, want string }{
		{"up", "three"}, {"up", "two words\nin two lines"}, {"up", "two words\nin two lines"}, {"up", "one"}, {"up", "one"},
		{"down", "two words\nin two lines"}, {"down", "three"}, {"down", "draft"}, {"down", "draft"},
	} {
		d.keys(step.key)
		if got := d.input.value(); got != step.want {
			t.Errorf("%s: %q, want %q", step.key, got, step.want)
		}
	}
	d.keys("ctrl+r", "T", "W", "ctrl+r")
	d.shows("two words in two lines")
	d.keys("backspace", "ctrl+r", "enter")
	if got := d.input.value(); got != "two words\nin two lines" {
		t.Errorf("found %q", got)
	}
	if _, sent := d.sent(); sent {
		t.Error("a line that was found is sent by itself")
	}
	d.keys("ctrl+r", "zzz", "esc")
	if got := d.input.value(); got != "two words\nin two lines" {
		t.Errorf("after a search without a result: %q", got)
	}
}

// The file has no secrets.
func TestLineHistoryHasNoSecrets(t *testing.T) {
	d := newDesk(t, 80, 24)
	d.options.Redact = redact.New("sk-0123456789")
	d.history.path = filepath.Join(t.TempDir(), "lines")
	d.happens(readiness{true})
	d.keys("my key is sk-0123456789")
	if failed := d.enter()(); failed != nil {
		t.Fatal(failed)
	}
	if said, _ := d.sent(); said != "my key is sk-0123456789" {
		t.Errorf("sent %q", said)
	}
	if text, err := os.ReadFile(d.history.path); err != nil || !strings.Contains(string(text), "my key is") || strings.Contains(string(text), "0123456789") {
		t.Errorf("the file: %s, %v", text, err)
	}
}

// Several processes write the file at the same time; it is private and bounded.
func TestLineHistoryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consort", "lines")
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 25 {
				if err := store(path, fmt.Sprintf("message %d of %d\nwith two lines", i, w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	h, err := loadHistory(path)
	if err != nil || len(h.lines) != 200 {
		t.Errorf("%d lines, %v", len(h.lines), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	for i := range 80 {
		if err := store(path, fmt.Sprint(i, strings.Repeat("x", 20_000))); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryFile {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if h, err = loadHistory(path); err != nil || !strings.HasPrefix(h.lines[len(h.lines)-1], "79") {
		t.Errorf("the last line is not the newest: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := store(path, "more"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that others could read: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("\"whole\"\n\"cut of"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = loadHistory(path); err != nil || len(h.lines) != 1 {
		t.Errorf("a line that is cut: %q, %v", h.lines, err)
	}
}
