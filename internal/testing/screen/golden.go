// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// UpdateVar is the environment variable that makes [Golden] write its files.
const UpdateVar = "CONSORT_UPDATE_GOLDEN"

// Golden compares a screen with a file. The trailing empty rows do not count. With the
// environment variable [UpdateVar] set, it writes the file instead.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	got = strings.TrimRight(got, "\n") + "\n"
	if os.Getenv(UpdateVar) != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(got), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s does not exist; set %s=1 to write it:\n%s", path, UpdateVar, got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the screen differs from %s (set %s=1 to accept it):\n--- want\n%s--- got\n%s", path, UpdateVar, want, got)
	}
}
