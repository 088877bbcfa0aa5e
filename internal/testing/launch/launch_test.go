// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// role makes the test binary a program that listens, and names the file that it writes at
// its end.
const role = "CONSORT_TEST_LAUNCHED"

func TestMain(m *testing.M) {
	path := os.Getenv(role)
	if path == "" {
		os.Exit(m.Run())
	}
	fmt.Println("http://127.0.0.1:1")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := os.WriteFile(path, []byte("ended"), 0o600); err != nil {
		os.Exit(1)
	}
}

// A program is there until the test ends, and has ended then.
func TestProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "end")
	t.Run("with a program", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), role+"="+path)
		if got := Program(t, cmd); got != "http://127.0.0.1:1" {
			t.Errorf("the first line is %q", got)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the program ended before the test")
		}
	})
	if text, err := os.ReadFile(path); err != nil || string(text) != "ended" {
		t.Errorf("the program was not told to end: %q, %v", text, err)
	}
}
