// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/tomltext"
)

const sigterm = syscall.SIGTERM

// started is a run of the command that is under way, over pipes.
type started struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr strings.Builder
}

func start(t *testing.T, args ...string) *started {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s := &started{t: t, cmd: run{}.command(ctx, t, args...)}
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err == nil {
		s.stdin, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(stdout)
	return s
}

// until reads standard output until it has text.
func (s *started) until(text string) {
	s.t.Helper()
	var read strings.Builder
	for !strings.Contains(read.String(), text) {
		r, _, err := s.stdout.ReadRune()
		if err != nil {
			s.cmd.Wait()
			s.t.Fatalf("%v before %q came: %q; standard error: %s", err, text, &read, &s.stderr)
		}
		read.WriteRune(r)
	}
}

// signal sends a signal and expects the command to end soon.
func (s *started) signal(signal os.Signal, want exit.Status) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	s.ends(want)
}

func (s *started) ends(want exit.Status) {
	s.t.Helper()
	began := time.Now()
	io.Copy(io.Discard, s.stdout)
	s.cmd.Wait()
	if took := time.Since(began); took > 10*time.Second {
		s.t.Errorf("it took %v to end", took)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != int(want) {
		s.t.Errorf("exit status %d, want %d; standard error: %s", got, want, &s.stderr)
	}
	noProcessLeft(s.t)
}

func TestSignalsEndWhatIsGoingOn(t *testing.T) {
	t.Parallel()
	slow := file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`), calls("satchel__pack", `{"items":["hat"]}`))),
		atlas(time.Minute), satchel(time.Minute), allows)
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			s := start(t, "run", "go", "--json", "--config", slow)
			s.until(`"event":"invocation_started"`)
			s.signal(signal, exit.Failed)
			contains(t, "standard error", s.stderr.String(), "stopped: "+signal.String())
		})
	}
	t.Run("chat", func(t *testing.T) {
		x := run{}.onTerminal(t, "chat", "--config", file(t, model(t, slowly(1000)), atlas(0)))
		x.expect("tools of 1 server.")
		x.types("Talk.\r")
		x.expect("word word")
		x.cmd.Process.Signal(syscall.SIGTERM)
		contains(t, "the screen", x.ends(exit.Failed), "stopped: terminated")
	})
	t.Run("standard input", func(t *testing.T) {
		for _, args := range [][]string{{"run"}, {"call", "atlas", "weather", "-"}, {"history", "import", "-", "--history", filepath.Join(t.TempDir(), "history.db")}} {
			s := start(t, append(args, "--config", slow)...)
			io.WriteString(s.stdin, strings.Repeat(" ", 100<<10)) // more than a pipe holds: the command reads
			s.signal(syscall.SIGTERM, exit.Failed)
			contains(t, "standard error", s.stderr.String(), "stopped: terminated")
		}
	})
	t.Run("demo", func(t *testing.T) {
		s := start(t, "demo")
		s.until("I'll look at both lists")
		s.signal(syscall.SIGINT, exit.Failed)
	})
	t.Run("call", func(t *testing.T) {
		s := start(t, "call", "atlas", "weather", `{"city":"Oslo"}`, "--config", slow, "--log-level", "debug")
		waitFor(t, "a server", func() bool { return len(processes(markOf(t))) > 1 })
		s.signal(syscall.SIGINT, exit.Failed)
	})
}

// What a server has started is ended with it.
func TestAServersChildrenAreEnded(t *testing.T) {
	t.Parallel()
	script := fmt.Sprintf(`tail -f /dev/null | %[1]q atlas >/dev/null & exec %[1]q atlas`, testserver)
	path := file(t, fmt.Sprintf("[mcp.parent]\ntransport = \"stdio\"\ncommand = [\"sh\", \"-c\", %s]\n", tomltext.Quote(script)))
	consort(t, "call", "parent", "weather", `{"city":"Oslo"}`, "--config", path).expect(t, exit.Done)
}

// waitFor waits until something outside of this process is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("there was never %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A reader that has enough ends the command as an error does: nothing is left.
func TestABrokenPipeEndsTheRun(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`)), slowly(1000)), atlas(0))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := run{}.command(ctx, t, "run", "go", "--config", path)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	reader.Read(make([]byte, 1))
	reader.Close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != int(exit.Pipe) {
		t.Errorf("exit status %d, want %d", got, exit.Pipe)
	}
	noProcessLeft(t)
}

func TestChatOverPipes(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"first"}}, Reply: openaiserver.Message{Text: "One."}},
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"second"}}, Reply: openaiserver.Message{Text: "Two."}},
	))
	o := run{stdin: "the first\n\nthe second"}.consort(t, "chat", "--config", path).expect(t, exit.Done)
	if o.stdout != "One.\nTwo.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	gone := file(t, "[model]\nname = \"gone\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmax_retries = 0\n")
	run{stdin: "hi\n"}.consort(t, "chat", "--config", gone).expect(t, exit.Failed)
}

func TestInterruptOverPipes(t *testing.T) {
	t.Parallel()
	s := start(t, "chat", "--config", file(t, model(t, slowly(1000)), atlas(0)))
	io.WriteString(s.stdin, "Talk.\n")
	s.until("word word")
	s.cmd.Process.Signal(os.Interrupt)
	s.until("\n") // the turn is over
	io.WriteString(s.stdin, "Again.\n")
	s.until("word word")
	s.cmd.Process.Signal(os.Interrupt)
	s.until("\n")
	s.signal(os.Interrupt, exit.Done)
}
