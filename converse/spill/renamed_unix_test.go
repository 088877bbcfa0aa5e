// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spill

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/consort-go/consort/canister"
)

// A piece that removeUnowned renames after Keep has read it is written again.
func TestRenamedWhileKept(t *testing.T) {
	path := t.TempDir()
	folder := NewFolder(path)
	link, err := folder.Keep(t.Context(), "a", canister.Text("piece"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(path, link.Name)
	// The end of what is read from a pipe comes when its writer closes it.
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	renamed := make(chan error, 1)
	go func() {
		pipe, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			renamed <- err
			return
		}
		_, err = pipe.WriteString("piece")
		renamed <- errors.Join(err, os.Rename(name, filepath.Join(path, ".gone-0")), pipe.Close())
	}()
	if _, err := folder.Keep(t.Context(), "b", canister.Text("piece")); err != nil {
		t.Error(err)
	}
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "piece" {
		t.Errorf("it is %q, %v", text, err)
	}
}
