// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/parallelism"
	"github.com/consort-go/consort/internal/testing/raced"
)

// The programs that the tests start. Commands that a test acts on while they run are built as
// the tests are. Those that it only waits for do not have the race detector, with which each
// takes three times as long, and neither has testserver.
var binary, unraced, testserver string

func TestMain(m *testing.M) {
	if path := os.Getenv(workerVar); path != "" {
		os.Exit(beWorker(path))
	}
	parallelism.Set("6")
	if flag.Lookup("test.fuzzworker").Value.String() == "true" {
		os.Exit(m.Run()) // of a process that has made all that already
	}
	if os.Getenv(isolatedVar) != "" {
		fmt.Fprintf(os.Stderr, "%q: a process of the tests has no tests of its own to run\n", os.Args)
		os.Exit(2)
	}
	os.Exit(testMain(m))
}

// isolatedVar is set for the processes that the tests start.
const isolatedVar = "CONSORT_TEST_ISOLATED"

func testMain(m *testing.M) int {
	os.Setenv("CONSORT_TEST_PASSWORD", password)
	dir, err := os.MkdirTemp("", "consort-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return isolated(m, dir)
}

// build builds the programs.
func build(dir string) error {
	unraced, testserver = filepath.Join(dir, "consort"), filepath.Join(dir, "testserver")
	binary = unraced
	plain := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "../../cmd/consort", "./testserver")
	plain.Env = raced.Unraced()
	commands := []*exec.Cmd{plain}
	if raced.Enabled {
		binary = filepath.Join(dir, "raced", "consort")
		commands = append(commands, exec.Command("go", "build", "-race", "-ldflags=-s -w", "-o", binary, "../../cmd/consort"))
	}
	for _, cmd := range commands {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w\n%s", cmd.Args, err, out)
		}
	}
	return nil
}

// state is the folder below which the commands of each test keep what lasts.
var state string

// placeOf is the folder for it of one test.
func placeOf(t *testing.T) string { return filepath.Join(state, t.Name()) }

// isolated runs the tests with another home directory, which must contain no files of
// consort afterwards: no process of the tests sees the real one.
func isolated(m *testing.M, dir string) int {
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	state = filepath.Join(dir, "state")
	for name, value := range map[string]string{"XDG_STATE_HOME": state, "HOME": home, "LocalAppData": home, isolatedVar: "yes"} {
		os.Setenv(name, value)
	}
	failed := m.Run()
	if left := processes(""); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "the tests have left processes behind: %q\n", left)
		return 1
	}
	if left := ours(home); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "the tests have written into their home: %q\n", left)
		return 1
	}
	return failed
}

// ours returns the files of consort in a folder. Other programs, such as the Go tools,
// may have theirs there.
func ours(folder string) (found []string) {
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if rest, _ := strings.CutPrefix(path, folder); err != nil || strings.Contains(rest, "consort") {
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// limit bounds each run of the command.
const limit = 60 * time.Second

// run is one run of the command, over pipes.
type run struct {
	stdin string
	env   []string
	dir   string
	limit time.Duration // 0 means limit
}

// outcome is the result of a run.
type outcome struct {
	stdout, stderr string
	status         int
}

// consort runs the command and waits for it, and for nothing of it to be left.
func (r run) consort(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := r.command(ctx, t, args...)
	cmd.Path = unraced
	// Files, since the end of a pipe would wait for whoever else holds it.
	stdout, stderr := temporary(t), temporary(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(r.stdin), stdout, stderr
	err := cmd.Run()
	noProcessLeft(t)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("consort %s did not end\nstdout: %s\nstderr: %s", strings.Join(args, " "), written(t, stdout), written(t, stderr))
	}
	return outcome{written(t, stdout), written(t, stderr), cmd.ProcessState.ExitCode()}
}

func temporary(t *testing.T) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func written(t *testing.T, file *os.File) string {
	t.Helper()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (r run) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = r.dir
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENAI_") && !strings.HasPrefix(variable, "OTEL_") && !strings.HasPrefix(variable, "NO_COLOR=") &&
			!strings.HasPrefix(variable, "CONSORT_CONFIG=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(
		append(cmd.Env, "TERM=xterm-256color", "LC_ALL=C.UTF-8", markOf(t), "GORACE=atexit_sleep_ms=0", "XDG_STATE_HOME="+placeOf(t), "XDG_CONFIG_HOME="),
		r.env...,
	)
	return cmd
}

// consort runs the command with nothing special.
func consort(t *testing.T, args ...string) outcome {
	t.Helper()
	return run{}.consort(t, args...)
}

// markOf is a variable that the processes of a test have. Servers inherit the variables of
// the locale, so they have it too.
func markOf(t *testing.T) string { return "LC_TEST=" + t.Name() }

// processes returns the processes with a mark, or all if it is empty, that run the command, a
// server of testserver, or this test binary as a worker.
func processes(mark string) []string {
	var found []string
	self, _ := os.Readlink("/proc/self/exe")
	own := fmt.Sprintf("/proc/%d/exe", os.Getpid())
	var names []string
	if proc, err := os.Open("/proc"); err == nil {
		names, _ = proc.Readdirnames(-1)
		proc.Close()
	}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue // not the number of a process
		}
		link := "/proc/" + name + "/exe"
		target, err := os.Readlink(link)
		ours := target == binary || target == unraced || target == testserver || target == self && link != own
		if err == nil && ours && (mark == "" || marked(link, mark)) {
			arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found = append(found, string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// marked reports whether a process has the mark of a test or of one of its subtests.
func marked(link, mark string) bool {
	environment, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "environ"))
	for entry := range bytes.SplitSeq(environment, []byte{0}) {
		if string(entry) == mark || bytes.HasPrefix(entry, []byte(mark+"/")) {
			return true
		}
	}
	return false
}

// noProcessLeft fails if the command has left a server behind. It checks systems with a
// /proc.
func noProcessLeft(t *testing.T) {
	t.Helper()
	if left := processes(markOf(t)); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func (o outcome) expect(t *testing.T, want exit.Status) outcome {
	t.Helper()
	if o.status != int(want) {
		t.Fatalf("exit status %d, want %d\nstdout: %s\nstderr: %s", o.status, want, o.stdout, o.stderr)
	}
	return o
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func lacks(t *testing.T, what, text string, unwanted ...string) {
	t.Helper()
	for _, word := range unwanted {
		if strings.Contains(text, word) {
			t.Errorf("%s has %q:\n%s", what, word, text)
		}
	}
}

// model starts a scripted model and returns its table of a configuration.
func model(t *testing.T, steps ...openaiserver.Step) string {
	t.Helper()
	server, err := openaiserver.Start(openaiserver.Script{Steps: steps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n", server.URL())
}

func says(text string, calls ...openaiserver.Call) openaiserver.Step {
	return openaiserver.Step{Reply: openaiserver.Message{Text: text, Calls: calls}}
}

func calls(name, arguments string) openaiserver.Call {
	return openaiserver.Call{Name: name, Arguments: arguments}
}

// atlas is the table of a server of the demonstration, over stdio.
func atlas(pace time.Duration) string { return stdio("atlas", pace) }

func satchel(pace time.Duration) string { return stdio("satchel", pace) }

func stdio(name string, pace time.Duration) string {
	return fmt.Sprintf("[mcp.%s]\ntransport = \"stdio\"\ncommand = [%q, %q, \"--pace\", %q]\n", name, testserver, name, pace)
}

// allows is the table of a configuration whose calls need no approval.
const allows = "[approval]\ndefault = \"allow\"\n"

// broken is the table of a server that does not start.
const broken = "[mcp.broken]\ntransport = \"stdio\"\ncommand = [\"sh\", \"-c\", \"echo no licence >&2; exit 3\"]\n"

// file writes a configuration and returns its path.
func file(t *testing.T, tables ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "consort.toml")
	if err := os.WriteFile(path, []byte(strings.Join(tables, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeAt writes a file and its folders.
func writeAt(t *testing.T, text string, path ...string) string {
	t.Helper()
	at := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}
