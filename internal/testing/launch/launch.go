// SPDX-License-Identifier: Apache-2.0

// Package launch runs programs that tests need: programs that print where they listen, and
// end when their standard input is closed.
package launch

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may take to end before it is told to say where it hangs.
const patience = 30 * time.Second

// Program starts a program and returns the first line of its output. The program is told to
// end with the test, and must succeed. Its standard error goes to the test.
func Program(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Stderr = t.Output()
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		late := time.AfterFunc(patience, func() {
			if cmd.Process.Signal(syscall.SIGQUIT) != nil { // Windows has no signals
				_ = cmd.Process.Kill()
			}
		})
		defer late.Stop()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("%s ended with: %v", cmd.Path, err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not say where it listens: %v", cmd.Path, err)
	}
	return strings.TrimSpace(line)
}
