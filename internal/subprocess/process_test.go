// SPDX-License-Identifier: Apache-2.0

//go:build unix

package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/textcut"
)

func TestCloseByStdin(t *testing.T) {
	for _, c := range []Command{helperCommand("plain"), wrapped(helperCommand("plain"))} {
		p, conn := launch(t, c)
		mustAnswer(t, conn)
		mustClose(t, p)
		if status := p.cmd.ProcessState; status.ExitCode() != 0 {
			t.Errorf("%v: ended by %s, want the end of stdin to do", c.Argv[0], status)
		}
		if p.Err() != nil {
			t.Errorf("after close: %v", p.Err())
		}
		if _, err := conn.Read(t.Context()); err != io.EOF {
			t.Errorf("Read after close: %v, want EOF", err)
		}
		if err := conn.Write(t.Context(), request(t, 1, "ping", nil)); !errors.Is(err, ErrClosed) {
			t.Errorf("Write after close: %v, want ErrClosed", err)
		}
	}
}

// Each step of closing is reached, by the group and not just its leader.
func TestCloseSteps(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]syscall.Signal{
		"deaf":     syscall.SIGTERM,
		"stubborn": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			c := helperCommand(name)
			c.Grace = defaultGrace // within which the signal ends a process of a busy machine
			if name == "stubborn" {
				c.Grace = 100 * time.Millisecond
			}
			p, conn := launch(t, c)
			if name == "stubborn" { // says when it is
				if _, err := conn.Read(within(t)); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, p)
			status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != want {
				t.Errorf("ended by %s, want %s", p.cmd.ProcessState, want)
			}
		})
	}
}

// A context that has ended, or ends, cuts the grace periods short.
func TestCloseWithoutPatience(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, stop := range map[string]func(*Process){
		"kill":          func(p *Process) { p.Kill() },
		"ended context": func(p *Process) { _ = p.Close(ended) },
		"ending context": func(p *Process) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_ = p.Close(ctx)
		},
		"kill while closing": func(p *Process) {
			var closing sync.WaitGroup
			closing.Go(func() { _ = p.Close(context.Background()) })
			p.Kill()
			closing.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, conn := launch(t, wrapped(helperCommand("stubborn")))
			if _, err := conn.Read(within(t)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			stop(p)
			if took := time.Since(begin); took > patience/2 {
				t.Errorf("took %s, want no grace", took)
			}
			mustClose(t, p)
		})
	}
}

func TestCloseManyTimesAtOnce(t *testing.T) {
	p, conn := launch(t, helperCommand("plain"))
	mustAnswer(t, conn)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p.Stop()
			if err := p.Close(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mustClose(t, p)
}

// Children of the server go, too: when it obeys, and when it is killed first.
func TestGrandchildren(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "leader killed", "leader exits"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			said := make(chan int, 1)
			c := helperCommand("parent")
			c.Grace = 300 * time.Millisecond
			c.Stderr = func(line string) {
				if pid, ok := strings.CutPrefix(line, "child "); ok {
					n, _ := strconv.Atoi(pid)
					said <- n
				}
			}
			p, conn := launch(t, c)
			child := <-said
			if _, err := conn.Read(within(t)); err != nil { // the child is stubborn now
				t.Fatal(err)
			}
			switch how {
			case "leader killed":
				_ = p.cmd.Process.Kill()
				waitLost(t, p)
				if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exited: signal: killed") {
					t.Errorf("err = %v, want the signal", err)
				}
			case "leader exits":
				// The child may read the request, too, and does not.
				if err := conn.Write(within(t), request(t, 1, "exit", []int{0})); err != nil {
					t.Fatal(err)
				}
				waitLost(t, p)
			}
			mustClose(t, p)
			if running(child) {
				t.Error("the child of the server is left")
			}
		})
	}
}

// A child that left the group escapes, and holds the pipes; neither the loss
// nor closing waits for it.
func TestEscapedGrandchild(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	c := helperCommand("escaped")
	c.Argv = []string{"sh", "-c", "setsid sleep 10 & echo over >&2; exit 3"}
	begin := time.Now()
	p, conn := launch(t, c)
	_, err := conn.Read(within(t))
	if want := `server "escaped" exited: exit status 3; stderr: over`; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
	mustClose(t, p)
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("it took %s, until the child ended by itself", took)
	}
}

func waitLost(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Lost():
	case <-time.After(patience):
		t.Fatal("the loss was not noticed")
	}
}

// An exit in the middle of a call is told at once, with status and stderr.
func TestExitInCall(t *testing.T) {
	for _, c := range []Command{helperCommand("plain"), wrapped(helperCommand("plain"))} {
		p, conn := launch(t, c)
		mustAnswer(t, conn)
		status := "3"
		if c.Argv[0] == "sh" {
			status = "0" // the status of the wrapper
		}
		want := `server "plain" exited: exit status ` + status + `; stderr: panic: out of cheese`
		_, err := roundTrip(t, conn, 1, "exit", []int{3})
		if err == nil || err.Error() != want {
			t.Errorf("err = %v\nwant  %s", err, want)
		}
		waitLost(t, p)
		var loss *ensemble.ProcessError
		if !errors.As(p.Err(), &loss) || loss.Exit != "exit status "+status {
			t.Errorf("p.Err() = %#v, want an *ensemble.ProcessError with the exit", p.Err())
		}
		if got := p.tail.text(); got != "going down\npanic: out of cheese" {
			t.Errorf("the tail is %q", got)
		}
		if err := conn.Write(t.Context(), request(t, 2, "ping", nil)); !errors.Is(err, ErrNotSent) || err.Error() != "not sent: "+want {
			t.Errorf("a later Write: %v, want the same", err)
		}
		mustClose(t, p)
		if p.Err() == nil {
			t.Error("close took the reason away")
		}
	}
}

// What a server wrote before it exited still arrives.
func TestLastWordsArrive(t *testing.T) {
	const count = 200
	c := helperCommand("plain")
	c.Argv = []string{"sh", "-c", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo '%s'; i=$((i+1)); done; exit 5`, count, ping)}
	p, conn := launch(t, c)
	<-p.exited // or it stands in the full pipe, and the rest comes while we read
	for i := range count {
		if _, err := conn.Read(within(t)); err != nil {
			t.Fatalf("message %d of %d: %v", i, count, err)
		}
	}
	if _, err := conn.Read(within(t)); err == nil || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("in the end: %v", err)
	}
}

func TestStrayLines(t *testing.T) {
	var noise []string
	c := helperCommand("banner")
	c.StrayLine = func(line string) { noise = append(noise, line) }
	p, conn := launch(t, c)
	mustAnswer(t, conn)
	mustClose(t, p)
	want := []string{"Server running on stdio", `{"level":"info"}`, "ready"}
	if fmt.Sprint(noise) != fmt.Sprint(want) {
		t.Errorf("noise = %q, want %q", noise, want)
	}
}

func TestFloodOfStderr(t *testing.T) {
	var lines atomic.Int64
	c := helperCommand("flood-stderr")
	c.Stderr = func(string) { lines.Add(1) }
	p, conn := launch(t, c)
	mustAnswer(t, conn)
	mustClose(t, p)
	if lines.Load() != 10<<10+1 {
		t.Errorf("%d lines were handed over, want all %d", lines.Load(), 10<<10+1)
	}
	if text := p.tail.text(); len(text) > maxTail || !strings.HasSuffix(text, "the last line") {
		t.Errorf("the tail has %d bytes and ends in %q", len(text), text[len(text)-20:])
	}
}

// What a server wrote to stderr before it ended is read before close returns.
func TestLastWordsOnStderr(t *testing.T) {
	const count = 300 // which the pipe holds, but no buffer of ours
	exited := make(chan struct{})
	lines := 0
	c := helperCommand("plain")
	c.Argv = []string{"sh", "-c", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do printf '%%0100d\n' $i >&2; i=$((i+1)); done; read line`, count)}
	c.Stderr = func(string) { <-exited; lines++ }
	p, _ := launch(t, c)
	go func() { <-p.exited; close(exited) }()
	mustClose(t, p)
	if lines != count {
		t.Errorf("%d lines of %d were read", lines, count)
	}
}

// A long line of stderr is delivered once, cut; unread messages do not delay Close.
func TestLongLineAndUnreadMessages(t *testing.T) {
	var lines []string
	c := helperCommand("plain")
	c.Argv = []string{"sh", "-c", "echo '" + ping + "'; echo '" + ping + "'; printf '%010000d\\nend\\n' 0 >&2; read line"}
	c.Stderr = func(line string) { lines = append(lines, line) }
	p, _ := launch(t, c)
	mustClose(t, p)
	if len(lines) != 2 || len(lines[0]) != maxTextLine-1 || !strings.HasSuffix(lines[0], textcut.Mark) || lines[1] != "end" {
		t.Errorf("%d lines, want the beginning of the first, marked as cut, and the last", len(lines))
	}
}

// Overlong lines never fill the memory. One that may be an answer ends the connection
// with an error, because its call would wait forever; other output does not.
func TestEndlessLine(t *testing.T) {
	for _, name := range []string{"endless-line", "endless-noise"} {
		t.Run(name, func(t *testing.T) {
			c := helperCommand(name)
			c.Grace = 200 * time.Millisecond
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, conn := launchBounded(t, c, 4<<20)
			if name == "endless-noise" {
				mustAnswer(t, conn)
			} else if _, err := conn.Read(within(t)); !errors.Is(err, ErrMessageTooLarge) || !strings.Contains(err.Error(), "more than 4194304 bytes") {
				t.Errorf("err = %v, want the size named", err)
			}
			mustClose(t, p)
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 { // 100 MB came; doubling a buffer to 4 MiB costs some
				t.Errorf("%d MiB were allocated", grown>>20)
			}
		})
	}
}

func TestHalfMessage(t *testing.T) {
	_, conn := launch(t, helperCommand("half-message"))
	_, err := conn.Read(within(t))
	if !errors.Is(err, ErrHalfMessage) || !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("err = %v, want both the exit and the half message", err)
	}
}

// A server that closes stdout and lives on is of no more use, and is ended.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	c := helperCommand("close-stdout")
	c.Grace = 100 * time.Millisecond
	p, conn := launch(t, c)
	if _, err := conn.Read(within(t)); !errors.Is(err, ErrStdoutClosed) {
		t.Errorf("err = %v, want %v", err, ErrStdoutClosed)
	}
	if !mcptest.Eventually(p.hasExited) {
		t.Error("it was left alone")
	}
	mustClose(t, p)
}

// A server that stops reading does not hold a call past its deadline. A
// message that did not begin to leave leaves the connection as it is; half a
// message ends it.
func TestBlockedStdin(t *testing.T) {
	t.Parallel()
	c := helperCommand("going-deaf")
	c.Grace = 100 * time.Millisecond
	p, conn := launch(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrote := make(chan error, 1)
	go func() { wrote <- conn.Write(ctx, request(t, 1, "ping", strings.Repeat("x", 300<<10))) }()
	if _, err := conn.Read(within(t)); err != nil { // it has heard a byte, and that was all
		t.Fatal(err)
	}

	soon, cancelSoon := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelSoon()
	if err := conn.Write(soon, request(t, 2, "ping", nil)); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotSent) {
		t.Errorf("a call that waits for its turn: %v, want its deadline", err)
	}
	if p.Err() != nil {
		t.Errorf("the waiting call broke the connection: %v", p.Err())
	}

	cancel()
	select {
	case err := <-wrote:
		if err == nil || errors.Is(err, ErrNotSent) {
			t.Errorf("half a message: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the context did not end the write")
	}
	waitLost(t, p)
	if !errors.Is(p.Err(), ErrNotReading) {
		t.Errorf("err = %v, want %v", p.Err(), ErrNotReading)
	}
	mustClose(t, p)
}

// close does not wait for a blocked write either.
func TestCloseDuringBlockedWrite(t *testing.T) {
	c := helperCommand("deaf")
	c.Grace = 100 * time.Millisecond
	p, conn := launch(t, c)
	wrote := make(chan error, 1)
	go func() { wrote <- conn.Write(context.Background(), request(t, 1, "ping", strings.Repeat("x", 300<<10))) }()
	if !mcptest.Eventually(func() bool { return len(p.writing) == 1 }) {
		t.Fatal("the write did not begin")
	}
	mustClose(t, p)
	if err := <-wrote; !errors.Is(err, ErrClosed) {
		t.Errorf("the write: %v, want ErrClosed", err)
	}
}

func TestReadEndsWithContext(t *testing.T) {
	_, conn := launch(t, helperCommand("plain"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := conn.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v, want its context's end", err)
	}
	mustAnswer(t, conn)
}

// The server dies with this program, even if it was killed.
func TestParentDeath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal")
	}
	t.Setenv("SUBPROCESS_TEST_CHILD", "stubborn")
	p, conn := launch(t, helperCommand("embedder"))
	msg, err := conn.Read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var server struct{ PID int }
	if err := json.Unmarshal(msg.Params, &server); err != nil {
		t.Fatal(err)
	}
	if !running(server.PID) {
		t.Fatal("the server went before its parent")
	}
	_ = p.cmd.Process.Kill()
	if !mcptest.Eventually(func() bool { return !running(server.PID) }) {
		t.Error("the server is left after its parent was killed")
		_ = syscall.Kill(server.PID, syscall.SIGKILL)
	}
}

func TestStartErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "data", 0o644)
	garbage := file("garbage", "data", 0o755)
	orphan := file("orphan", "#!/no/such/interpreter\n", 0o755)
	env := func(path string) []string { return []string{"PATH=" + path} }
	for name, test := range map[string]struct {
		c    Command
		want string
	}{
		"no command":      {Command{}, "no command is given"},
		"unknown":         {Command{Argv: []string{"no-such-command", "--token=planted"}}, `command "no-such-command" is not in its PATH`},
		"not in its PATH": {Command{Argv: []string{"sh"}, Env: env("/nowhere")}, `command "sh" is not in its PATH`},
		"missing file":    {Command{Argv: []string{"/no/such/file", "planted"}}, "no such file; install it, or correct the path"},
		"not executable":  {Command{Argv: []string{plain, "planted"}}, "make the file executable"},
		"in PATH, not so": {Command{Argv: []string{"plain"}, Env: env(dir)}, "make the file executable"},
		"no program":      {Command{Argv: []string{garbage, "planted"}}, "not a program for this machine"},
		"no interpreter":  {Command{Argv: []string{orphan}}, "the interpreter in its first line"},
		"missing dir":     {Command{Argv: []string{"sh"}, Dir: "/no/such/dir"}, "its working directory"},
		"dir is a file":   {Command{Argv: []string{"sh"}, Dir: plain}, "is not a directory"},
	} {
		test.c.Name = "files"
		p, err := test.c.Start(t.Context())
		if err == nil {
			p.Kill()
			t.Errorf("%s: it started", name)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, `starting server "files": `) || !strings.Contains(text, test.want) ||
			strings.Contains(text, "planted") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := helperCommand("plain").Start(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// Command, directory and environment are the server's own.
func TestStartIn(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nprintf '{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}\\n' \"$(pwd) $GIVEN\"\ncat\n"
	if err := os.WriteFile(filepath.Join(dir, "serve"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Command{
		"by path":         {Argv: []string{"./serve"}, Env: SafeEnv(map[string]string{"GIVEN": "value"})},
		"by its own PATH": {Argv: []string{"serve"}, Env: SafeEnv(map[string]string{"GIVEN": "value", "PATH": dir + ":" + os.Getenv("PATH")})},
	} {
		c.Name, c.Dir, c.Grace = name, dir, patience
		p, conn := launch(t, c)
		msg, err := conn.Read(within(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := msg.Method; got != dir+" value" {
			t.Errorf("%s: %q, want the directory and what was given", name, got)
		}
		mustClose(t, p)
	}
}
