// SPDX-License-Identifier: Apache-2.0

package reload_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/reload"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loader returns a loader that reads the file at path and the one that it imports.
func loader(path string) reload.Load {
	return func(read func(path string) ([]byte, error)) {
		text, _ := read(path)
		if imported := regexp.MustCompile(`(?m)^import = \["(.*)"\]$`).FindSubmatch(text); imported != nil {
			_, _ = read(filepath.Join(filepath.Dir(path), string(imported[1])))
		}
	}
}

// A byte order mark and comments before JSON are no part of the values.
func TestReadWithAMark(t *testing.T) {
	folder := t.TempDir()
	path := write(t, filepath.Join(folder, "consort.toml"), "\ufeffopen = true\nimport = [\"host.json\"]\n")
	imported := write(t, filepath.Join(folder, "host.json"), "\ufeff// of VS Code\n{\"servers\": {}}")
	load := func(read func(path string) ([]byte, error)) { _, _ = read(imported) } // as from a flag
	before := reload.Read(path, load)
	write(t, path, "\ufeffimport = [\"host.json\"]\n")
	write(t, imported, "\ufeff// of VS Code\n{\"servers\": {\"a\": {\"command\": \"x\"}}}")
	after := before.Again()
	if got, want := after.Changed(before), []string{"mcp", "mcp.a.command", "open"}; after.Equal(before) || !slices.Equal(got, want) {
		t.Errorf("changed are %v, want %v", got, want)
	}
	if text, err := after.Text(imported); err != nil || !strings.Contains(string(text), "command") {
		t.Errorf("the imported file is %q, %v", text, err)
	}
	if _, err := after.Text(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was not read: %v", err)
	}
	write(t, path, "\ufeff\n")
	if !before.Again().IsEmpty() {
		t.Error("a file with only a mark is not empty")
	}
}

func TestChanged(t *testing.T) {
	folder := t.TempDir()
	imported := write(t, filepath.Join(folder, "host.json"), `{"mcpServers": {"b c": {"command": "x"}}, "other": 1}`)
	path := write(
		t, filepath.Join(folder, "consort.toml"),
		"import = [\"host.json\"]\n[serve]\nhttp = \"a\"\nclients = [{token = \"1\"}]\n[mcp.a]\ncommand = [\"x\"]\n",
	)
	before := reload.Read(path, loader(path))
	if !before.Equal(reload.Read(path, loader(path))) || !slices.Equal(before.Paths(), []string{path, imported}) {
		t.Errorf("the files are %v", before.Paths())
	}
	write(t, imported, `{"mcpServers": {"b c": {"command": "y"}}}`)
	write(t, path, "# new\nimport = [\"host.json\"]\n[mcp.a]\ncommand = [\"x\"]\n[serve]\nclients = [{token = \"2\"}]\nrate = 2\nhttp = \"a\"\n")
	after := reload.Read(path, loader(path))
	if got, want := after.Changed(before), []string{`mcp."b c".command`, "serve.clients", "serve.rate"}; !slices.Equal(got, want) {
		t.Errorf("changed are %v, want %v", got, want)
	}
	write(t, path, `{"serve": {"rate": 2}}`)
	if got := reload.Read(path, loader(path)).Changed(after); slices.Contains(got, "serve.rate") || !slices.Contains(got, "serve.http") {
		t.Errorf("from TOML to JSON, changed are %v", got)
	}
	write(t, path, "[serve")
	if got := reload.Read(path, loader(path)); got.Equal(after) || !slices.Equal(got.Paths(), []string{path}) {
		t.Errorf("of a file that is not valid: %v", got.Paths())
	}
}

// Of a file that is too large, only so much is read that the configuration is refused.
func TestReadOfALargeFile(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "consort.toml"), "[serve]\n")
	before := reload.Read(path, loader(path))
	if err := os.Truncate(path, 2<<20); err != nil {
		t.Skip(err)
	}
	after := before.Again()
	text, err := after.Text(path)
	if err != nil || len(text) != 1<<20+1 || after.Equal(before) || after.IsEmpty() {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if _, err := config.Parse(path, text, nil); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("the configuration is taken: %v", err)
	}
	write(t, path, "#"+strings.Repeat(" ", 1<<20-9)+"\n[serve]")
	whole, err := before.Again().Text(path)
	if err != nil || len(whole) != 1<<20 {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	if _, err := config.Parse(path, whole, nil); err != nil {
		t.Errorf("of the largest file: %v", err)
	}
}

// A file that cannot be read, such as a folder in its place, is not taken for one that is being written.
func TestIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consort.toml")
	for _, step := range []struct {
		name string
		do   func() error
		want bool
	}{
		{"absent", func() error { return nil }, true},
		{"empty", func() error { return os.WriteFile(path, nil, 0o600) }, true},
		{"not empty", func() error { return os.WriteFile(path, []byte("[serve]"), 0o600) }, false},
		{"a folder", func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := reload.Read(path, loader(path)).IsEmpty(); got != step.want {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}

// The watcher sees every way to change a file, and only these.
func TestWatch(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(in("v1"), 0o700), os.Mkdir(in("v2"), 0o700), os.Mkdir(in("v3"), 0o700), os.Mkdir(in("etc"), 0o700))
	plain := write(t, in("plain.toml"), "1")
	write(t, in("v1", "consort.toml"), "1")
	write(t, in("v2", "consort.toml"), "2")
	if runtime.GOOS != "windows" { // links need a privilege there
		must(os.Symlink(filepath.Join("..", "v1"), in("etc", "..data")), os.Symlink(filepath.Join("..data", "consort.toml"), in("etc", "consort.toml")))
	}
	failed := make(chan error, 10)
	w, err := reload.Watch(func(err error) { failed <- err })
	must(err)
	defer w.Close()
	paths := []string{plain, in("etc", "consort.toml")}
	for _, change := range []struct {
		name string
		do   func()
	}{
		{"written in place", func() { write(t, plain, "2") }},
		{"replaced by another file", func() { must(os.Rename(write(t, in("plain.toml~"), "3"), plain)) }},
		{"made readable", func() { must(os.Chmod(plain, 0o644)) }},
		{"removed", func() { must(os.Remove(plain)) }},
		{"made again", func() { write(t, plain, "4") }},
		{"a link on the way leads elsewhere", func() {
			must(os.Symlink(filepath.Join("..", "v2"), in("etc", "..data_tmp")), os.Rename(in("etc", "..data_tmp"), in("etc", "..data")))
		}},
		{"and there it is written", func() { write(t, in("v2", "consort.toml"), "5") }},
	} {
		if runtime.GOOS == "windows" && strings.Contains(change.name, "link") {
			break
		}
		w.Set(paths)
		changed := make(chan bool, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		write(t, in("other.toml"), "nothing to do with it")
		change.do()
		go func() { changed <- w.Next(ctx) }()
		if !<-changed {
			t.Errorf("not seen: %s", change.name)
		}
		cancel()
	}
	w.Set(paths)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	write(t, in("other.toml"), "again")
	if runtime.GOOS != "windows" {
		write(t, in("v1", "consort.toml"), "the former place")
	}
	if w.Next(ctx) {
		t.Error("changes of other files are seen")
	}
	w.Set([]string{in("nowhere", "consort.toml")})
	if err := <-failed; err == nil {
		t.Error("a folder that does not exist is watched")
	}
}

func TestListenAndAsk(t *testing.T) {
	folder, err := os.MkdirTemp("", "reload") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	folder = filepath.Join(folder, "run")
	ctx, cancel := context.WithCancel(t.Context())
	config := filepath.Join(t.TempDir(), "consort.toml")
	if found, err := reload.Ask(ctx, folder, config); err != nil || len(found) > 0 {
		t.Errorf("without a process: %v, %v", found, err)
	}
	dies := func(socket string) {
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		listener.Close()
	}
	dies(filepath.Join(folder, "ABCDEFABCDEF-1-ABCD.sock")) // of another configuration
	closed, err := reload.Listen(ctx, folder, config, func(context.Context) reload.Outcome {
		return reload.Outcome{Process: os.Getpid(), Error: "", Added: []string{"files"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := sockets(t, folder); len(found) != 2 { // with its lock
		t.Fatalf("the sockets are %v", found)
	}
	dies(filepath.Join(folder, strings.Replace(sockets(t, folder)[0], "-", "-9", 1)))
	found, err := reload.Ask(ctx, folder, config)
	if err != nil || len(found) != 1 || found[0].Process != os.Getpid() || found[0].Added[0] != "files" {
		t.Errorf("found are %+v, %v", found, err)
	}
	if found, err := reload.Ask(ctx, folder, config+"x"); err != nil || len(found) > 0 {
		t.Errorf("of another configuration: %v, %v", found, err)
	}
	cancel()
	closed()
	if left := sockets(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := reload.Ask(t.Context(), folder, config); err == nil {
		t.Error("a folder of which others can enter is used")
	}
}

// A process is found whatever characters the folder of its socket has, and by each path of its
// configuration.
func TestAskByAnotherPath(t *testing.T) {
	folder := filepath.Join(filepath.Dir(runFolder(t)), "a[b]", "run")
	place := filepath.Join(t.TempDir(), "real")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(place), "link")
	if err := os.Symlink(place, link); err != nil {
		t.Skip(err)
	}
	for _, listening := range []string{place, link} {
		ctx, cancel := context.WithCancel(t.Context())
		closed, err := reload.Listen(ctx, folder, filepath.Join(listening, "consort.toml"), func(context.Context) reload.Outcome { return reload.Outcome{} })
		if err != nil {
			t.Fatal(err)
		}
		for _, asking := range []string{place, link} {
			if found, err := reload.Ask(ctx, folder, filepath.Join(asking, "consort.toml")); err != nil || len(found) != 1 {
				t.Errorf("listening for %s, asking for %s: %v, %v", listening, asking, found, err)
			}
		}
		cancel()
		closed()
	}
}

// A process is also found after a link of its folder was moved, as a deployment does.
func TestAskByAMovedLink(t *testing.T) {
	folder, place := runFolder(t), t.TempDir()
	link := filepath.Join(place, "current")
	leads := func(to string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(place, to), 0o700), os.Remove(link)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(place, to), link); err != nil {
			t.Skip(err)
		}
	}
	leads("42")
	ctx, cancel := context.WithCancel(t.Context())
	closed, err := reload.Listen(ctx, folder, filepath.Join(link, "consort.toml"), func(context.Context) reload.Outcome { return reload.Outcome{} })
	if err != nil {
		t.Fatal(err)
	}
	defer closed()
	defer cancel()
	for _, to := range []string{"43", "44"} {
		leads(to)
		if found, err := reload.Ask(ctx, folder, filepath.Join(link, "consort.toml")); err != nil || len(found) != 1 {
			t.Errorf("by a link to %s: %v, %v", to, found, err)
		}
	}
	for folderOf, want := range map[string]int{"42": 1, "other": 0} {
		if found, err := reload.Ask(ctx, folder, filepath.Join(place, folderOf, "consort.toml")); err != nil || len(found) != want {
			t.Errorf("by %s: %v, %v", folderOf, found, err)
		}
	}
}

// Settled returns the files after the last change, and of files that always change the
// ones after 10 seconds.
func TestSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consort.toml")
	for changes, want := range map[int]time.Duration{0: 250 * time.Millisecond, 5: 750 * time.Millisecond, 500: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			write(t, path, "[serve]\n")
			var writer sync.WaitGroup
			writer.Go(func() {
				for i := range changes {
					time.Sleep(100 * time.Millisecond)
					write(t, path, fmt.Sprintf("[serve]\nrate = %d\n", i+1))
				}
			})
			defer writer.Wait()
			began := time.Now()
			files := reload.Read(path, loader(path)).Settled(t.Context())
			took := time.Since(began)
			if took < want || took > want+250*time.Millisecond {
				t.Errorf("%d changes: after %v, want %v", changes, took, want)
			}
			if changes == 5 && !files.Equal(files.Again()) {
				t.Error("a file that is still written is returned")
			}
		})
	}
}

// runFolder returns a folder for sockets: their paths are short.
func runFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "reload")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return filepath.Join(folder, "run")
}

// Processes are asked at the same time, a socket of one that has the same ID is not taken
// away, and one that does not answer does not hide the answers of the others.
func TestAskAtOnce(t *testing.T) {
	folder, config := runFolder(t), filepath.Join(t.TempDir(), "consort.toml")
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Add(2)
	asked := make(chan struct{})
	go func() {
		both.Wait()
		close(asked)
	}()
	for range 2 {
		closed, err := reload.Listen(ctx, folder, config, func(context.Context) reload.Outcome {
			both.Done()
			select {
			case <-asked:
				return reload.Outcome{Process: 1}
			case <-time.After(time.Minute):
				return reload.Outcome{Error: "the other process was not asked"}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closed()
	}
	defer cancel()
	silent, err := net.Listen("unix", filepath.Join(folder, strings.Replace(sockets(t, folder)[0], ".sock", "x.sock", 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	found, err := reload.Ask(ctx, folder, config)
	if len(found) != 2 || found[0].Error != "" || found[1].Error != "" || err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("found are %+v, %v", found, err)
	}
}

func sockets(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
