// SPDX-License-Identifier: Apache-2.0

package writefile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// With Sync, the data is on the disk before the name, and the name when Replace returns.
func TestSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders cannot be synced here")
	}
	path := filepath.Join(t.TempDir(), "file")
	var synced []string
	defer func() { syncFile = (*os.File).Sync }()
	syncFile = func(file *os.File) error {
		what := "data"
		if file.Name() == filepath.Dir(path) {
			what = "folder"
		}
		if text, err := os.ReadFile(path); err == nil {
			what += " with " + string(text)
		}
		synced = append(synced, what)
		return nil
	}
	put := func(file *os.File) error { _, err := file.WriteString("text"); return err }
	if _, err := Replace(path, &Options{Sync: true}, put); err != nil || !slices.Equal(synced, []string{"data", "folder with text"}) {
		t.Errorf("synced are %q, %v", synced, err)
	}
	for fail, want := range map[error]error{syscall.EIO: syscall.EIO, syscall.EINVAL: nil} {
		syncFile = func(file *os.File) error {
			if file.Name() == filepath.Dir(path) {
				return &os.PathError{Op: "sync", Path: path, Err: fail}
			}
			return nil
		}
		if _, err := Replace(path, &Options{Sync: true}, put); !errors.Is(err, want) {
			t.Errorf("with %v: %v, want %v", fail, err, want)
		}
	}
}
