// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// counting is a program that counts how often it gets SIGINT.
const counting = `#!/usr/bin/env node
let n = 0;
process.on("SIGINT", () => { n++; console.log("SIGINT"); });
process.on("SIGTERM", () => { console.log(n + " in all"); process.exit(); });
process.stdin.resume();
console.log("ready");
`

// launched returns a run of the npm package, whose program is counting.
func launched(t *testing.T) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	script, err := os.ReadFile(filepath.Join("..", "..", ".ci", "consort.js"))
	if err != nil {
		t.Fatal(err)
	}
	cpu := strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	packages := filepath.Join(t.TempDir(), "node_modules", "@consort-go")
	launcher := writeAt(t, string(script), packages, "consort", "bin", "consort.js")
	program := writeAt(t, counting, packages, "consort-"+runtime.GOOS+"-"+cpu, "bin", "consort")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, "node", launcher)
}

// launch is how a launcher is started.
type launch struct {
	controlling bool // a terminal is that of the processes
	stdout      bool // is the terminal; otherwise a pipe
	stderr      bool // is the terminal
}

// The program gets one SIGINT for each Ctrl-C, which a terminal sends to it and to the launcher, whatever their
// streams are; and one for each SIGINT that another program sends to a launcher that is not in the foreground.
func TestCtrlCOfTheNPMPackage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]launch{
		"on a terminal, with a piped standard input": {controlling: true, stdout: true, stderr: true},
		"on a terminal that is none of the streams":  {controlling: true},
		"on no terminal": {},
		"a terminal of others, which is standard error": {stderr: true},
	} {
		t.Run(name, func(t *testing.T) { test.interrupts(t) })
	}
}

// interrupts sends one SIGINT to a launcher, or types Ctrl-C at its terminal.
func (test launch) interrupts(t *testing.T) {
	cmd := launched(t)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	window, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer window.Close()
	defer terminal.Close() // again, after an error
	var output io.Reader = window
	if test.stderr {
		cmd.Stderr = terminal
	}
	if test.stdout {
		cmd.Stdout = terminal
	} else if output, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}                                 // away from the terminal of this test
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the program, too
	interrupt := func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if test.controlling {
		cmd.ExtraFiles = []*os.File{terminal}
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 3
		interrupt = func() error { _, err := window.WriteString("\x03"); return err }
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close() // so that the window ends with the processes
	lines := bufio.NewScanner(output)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("no %q: %v", text, lines.Err())
	}
	until("ready")
	if err := interrupt(); err != nil {
		t.Fatal(err)
	}
	until("SIGINT")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // is passed on after the SIGINT, if that is
		t.Fatal(err)
	}
	until("1 in all")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
