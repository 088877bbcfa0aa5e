// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/ramdisk"
)

// The test binary is also the processes that the tests kill and confine; the
// variable says which, and its arguments.
const childVariable = "CONSORT_FILES_CHILD"

func TestMain(m *testing.M) {
	name, args, isChild := strings.Cut(os.Getenv(childVariable), " ")
	if !isChild {
		ramdisk.Use()
		os.Exit(m.Run())
	}
	if err := children[name](strings.Fields(args)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var children = map[string]func(args []string) error{
	"die": die, "full": full, "readonly": readonly, "append": appendSome, "spend": spendTogether,
}

// child is a process that does something with the store in a folder.
func child(t *testing.T, name, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join(append([]string{name, dir}, args...), " "))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

var large = strings.Repeat("long ", 1000)

func says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

func three(from int) []canister.Canister {
	return []canister.Canister{
		says(fmt.Sprint("c", from), "short"), says(fmt.Sprint("c", from+1), large+fmt.Sprint(from)), says(fmt.Sprint("c", from+2), "end"),
	}
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, s *Store, conversation string) []canister.Canister {
	t.Helper()
	var list []canister.Canister
	for c, err := range s.Read(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatalf("Read of %s: %v", conversation, err)
		}
		list = append(list, c)
	}
	return list
}

func ids(list []canister.Canister) string {
	var all []string
	for _, c := range list {
		all = append(all, c.Header().ID)
	}
	return strings.Join(all, " ")
}

// The writes that are killed. Each is done on a store with a conversation
// "talk" of c0 to c2, by a process and, after its end, by another.
var writes = map[string]func(s *Store) error{
	"append": func(s *Store) error { return s.Append(context.Background(), "talk", 3, three(3)...) },
	"found":  func(s *Store) error { return s.Append(context.Background(), "new", 0, three(0)...) },
	"fork":   func(s *Store) error { return s.Fork(context.Background(), "talk", 2, "fork") },
	"describe": func(s *Store) error {
		title := "title"
		return s.Describe(context.Background(), "talk", history.Change{Title: &title})
	},
	"delete": func(s *Store) error { return s.Delete(context.Background(), "talk", history.AnyLength) },
}

// die does a write and kills itself at a step of it, or when a write to a file
// has got as far as some bytes.
func die(args []string) error {
	dir, name := args[0], args[1]
	at, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s, err := Open(dir, nil)
	if err != nil {
		return err
	}
	count := 0
	step := func() bool { count++; return count == at }
	kill := func(what string) {
		fmt.Println(what)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it comes
	}
	s.step = func(what string) {
		if step() {
			kill(what)
		}
	}
	s.write = func(file *os.File, data []byte, offset int64) (int, error) {
		for _, part := range []int{0, 1, len(data) / 2, len(data) - 1} {
			if step() {
				_, _ = file.WriteAt(data[:part], offset)
				kill(fmt.Sprint("write of ", part, " of ", len(data)))
			}
		}
		return file.WriteAt(data, offset)
	}
	return writes[name](s)
}

// A process that is killed at any step of any write leaves the state before or the state
// after; repeating the write leads to the state after.
func TestKilledAtEveryStep(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := 0
			for at := 1; ; at++ {
				dir := t.TempDir()
				s := open(t, dir)
				if err := s.Append(t.Context(), "talk", 0, three(0)...); err != nil {
					t.Fatal(err)
				}
				cmd, out := child(t, "die", dir, name, strconv.Itoa(at))
				err := cmd.Run()
				if err == nil {
					break // there are no more steps
				}
				if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
					t.Fatalf("step %d: %v: %s", at, err, out)
				}
				steps++
				after := open(t, dir)
				checkKilled(t, after, name, fmt.Sprintf("killed at step %d, %s", at, strings.TrimSpace(out.String())))
				if err := write(after); err != nil && !(name == "fork" && errors.Is(err, history.ErrExists)) {
					t.Errorf("the write again after step %d: %v", at, err)
				}
				checkDone(t, open(t, dir), dir, name)
			}
			if least := map[string]int{"append": 12, "found": 15, "fork": 8, "describe": 5, "delete": 1}[name]; steps < least {
				t.Errorf("there were only %d steps to be killed at", steps)
			}
		})
	}
}

// checkKilled checks that a conversation is as before or as after the write.
func checkKilled(t *testing.T, s *Store, name, when string) {
	t.Helper()
	talk, other := ids(read(t, s, "talk")), ids(read(t, s, "new"))+ids(read(t, s, "fork"))
	allowed := map[string][]string{
		"append": {"c0 c1 c2 + ", "c0 c1 c2 c3 c4 c5 + "}, "found": {"c0 c1 c2 + ", "c0 c1 c2 + c0 c1 c2"},
		"fork": {"c0 c1 c2 + ", "c0 c1 c2 + c0 c1"}, "describe": {"c0 c1 c2 + "}, "delete": {"c0 c1 c2 + ", " + "},
	}[name]
	if got := talk + " + " + other; !slices.Contains(allowed, got) {
		t.Errorf("%s: there is %q", when, got)
	}
	for _, err := range s.List(t.Context(), history.Filter{}) {
		if err != nil {
			t.Errorf("%s: List: %v", when, err)
		}
	}
}

// checkDone checks that a write has been done, and nothing else is left.
func checkDone(t *testing.T, s *Store, dir, name string) {
	t.Helper()
	want := map[string]string{"append": "c0 c1 c2 c3 c4 c5", "found": "c0 c1 c2", "fork": "c0 c1", "describe": "c0 c1 c2", "delete": ""}[name]
	conversation := map[string]string{"found": "new", "fork": "fork"}[name]
	if conversation == "" {
		conversation = "talk"
	}
	list := read(t, s, conversation)
	if got := ids(list); got != want {
		t.Errorf("at the end there is %q, want %q", got, want)
	}
	for i, c := range list {
		if w := append(three(0), three(3)...)[i]; history.TextOf(c) != history.TextOf(w) {
			t.Errorf("%s says %.20q", c.Header().ID, history.TextOf(c))
		}
	}
	if info, err := s.Info(t.Context(), conversation); name == "describe" && (err != nil || info.Title != "title") {
		t.Errorf("at the end the info is %+v, %v", info, err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".lock" && entry.Name() != ".rename.lock" && name != "append" && name != "describe" {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// full appends until the disk is full.
func full(args []string) error {
	dir, how := args[0], args[1]
	s, err := Open(dir, nil)
	if err != nil {
		return err
	}
	if how == "limit" { // of a file, where a small disk cannot be had
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 40_000, Max: 40_000}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	for i := 0; ; i++ {
		pad := strings.Repeat("x", 900)
		err := s.Append(context.Background(), "talk", i, says(fmt.Sprint("c", i), pad))
		if err == nil && i < 1000 {
			continue
		}
		again := s.Append(context.Background(), "talk", i, says(fmt.Sprint("c", i), pad))
		beside := s.Append(context.Background(), "talk", i, says("large", strings.Repeat(large, 20)))
		fresh := s.Append(context.Background(), "other", 0, says("large", strings.Repeat(large, 20)))
		fmt.Println(i, errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG), again != nil, beside != nil, fresh != nil)
		fmt.Println(err)
		return nil
	}
}

func TestDiskIsFull(t *testing.T) {
	for _, how := range []string{"disk", "limit"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			if how == "disk" {
				mountSmall(t, dir)
			}
			cmd, out := child(t, "full", dir, how)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var count int
			var known, again, beside, fresh bool
			if _, err := fmt.Sscan(out.String(), &count, &known, &again, &beside, &fresh); err != nil || !known || !again ||
				!beside || !fresh || count < 10 || count > 900 {
				t.Fatalf("%v: %s", err, out)
			}
			if !strings.Contains(out.String(), `files: conversation "talk": append: nothing was appended: `) {
				t.Errorf("the error is %s", out)
			}
			s := open(t, dir)
			if list := read(t, s, "talk"); len(list) != count {
				t.Errorf("of %d canisters there are %d", count, len(list))
			}
			if _, err := s.Info(t.Context(), "other"); !errors.Is(err, history.ErrNotFound) {
				t.Errorf("Info of what could not be made: %v", err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "talk", "history.jsonl"))
			if err != nil || !bytes.HasSuffix(text, []byte("\n")) {
				t.Errorf("half a line is left: %v", err)
			}
			if how == "limit" { // there is room for this process
				if err := s.Append(t.Context(), "talk", count, says("on", "on we go")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// readonly uses a store that it may only read.
func readonly(args []string) error {
	dir := args[0]
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	s, err := Open(dir, nil)
	if err != nil {
		return err
	}
	count := 0
	for _, err := range s.Read(context.Background(), "talk", 0) {
		if err != nil {
			return err
		}
		count++
	}
	for info, err := range s.List(context.Background(), history.Filter{Text: "short"}) {
		fmt.Println(info.ID, info.Length, err)
	}
	fmt.Println(count)
	for _, write := range []string{"append", "found", "fork", "describe", "delete"} {
		err := writes[write](s)
		fmt.Println(write, errors.Is(err, fs.ErrPermission), err)
	}
	return nil
}

func TestReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "consort-files")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := open(t, dir).Append(t.Context(), "talk", 0, three(0)...); err != nil {
		t.Fatal(err)
	}
	modes := func(folder, file fs.FileMode) {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, folder)
			}
			return os.Chmod(path, file)
		})
	}
	modes(0o555, 0o444)
	defer modes(0o700, 0o600)
	cmd, out := child(t, "readonly", dir)
	err = cmd.Run()
	want := "talk 3 <nil>\n3\n"
	if err != nil || !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), " true files: conversation ") != len(writes) {
		t.Errorf("%v: %s", err, out)
	}
	if got := ids(read(t, open(t, dir), "talk")); got != "c0 c1 c2" {
		t.Errorf("at the end there is %q", got)
	}
}

// appendSome appends canisters of its own, whatever others do.
func appendSome(args []string) error {
	dir, name := args[0], args[1]
	s, err := Open(dir, nil)
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(os.Stdin); err != nil { // until all may begin
		return err
	}
	length := 0
	for n := range perProcess {
		for {
			err := s.Append(context.Background(), "talk", length, says(fmt.Sprint(name, "-", n), large), says(fmt.Sprint(name, "+", n), name))
			var conflict *history.ConflictError
			if errors.As(err, &conflict) {
				length = conflict.Length
				continue
			}
			if err != nil {
				return err
			}
			length += 2
			break
		}
	}
	return nil
}

const perProcess = 40

// Processes that append to one conversation at the same time lose nothing, and
// do not mix.
func TestProcessesAppendTogether(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	var waits []func() error
	var starts []io.Closer
	for _, name := range names {
		cmd, out := child(t, "append", dir, name)
		start, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		starts = append(starts, start)
		waits = append(waits, func() error {
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	for _, start := range starts {
		_ = start.Close()
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
	list := read(t, open(t, dir), "talk")
	next := map[string]int{}
	for i := 0; i+1 < len(list); i += 2 {
		name, n, _ := strings.Cut(list[i].Header().ID, "-")
		if n != fmt.Sprint(next[name]) || list[i+1].Header().ID != name+"+"+n {
			t.Fatalf("%s and %s stand at %d", list[i].Header().ID, list[i+1].Header().ID, i)
		}
		next[name]++
	}
	for _, name := range names {
		if next[name] != perProcess {
			t.Errorf("of %d appends of %s there are %d", perProcess, name, next[name])
		}
	}
}

// mountSmall makes a folder one of a disk of 64 KiB, or skips the test.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=64k", "consort-test", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}
