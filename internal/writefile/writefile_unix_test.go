// SPDX-License-Identifier: Apache-2.0

//go:build unix

package writefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/consort-go/consort/internal/writefile"
)

func put(text string) func(*os.File) error {
	return func(file *os.File) error { _, err := io.WriteString(file, text); return err }
}

func replace(t *testing.T, path, text string, options *writefile.Options) {
	t.Helper()
	if _, err := writefile.Replace(path, options, put(text)); err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v; want %q", path, got, err, want)
	}
}

func wantNoOthers(t *testing.T, folder string, n int) {
	t.Helper()
	if names, _ := os.ReadDir(folder); len(names) != n {
		t.Errorf("%s has %v, want %d entries", folder, names, n)
	}
}

func TestReplaceRegularFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, o := range []*writefile.Options{nil, {Sync: true}, {Temporary: ".fixed"}, {Mode: 0o400}, {KeepMode: true}} {
		replace(t, path, "one", o)
		replace(t, path, "two", o)
		wantText(t, path, "two")
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o400 {
		t.Errorf("the mode is %v and was to be kept", info.Mode())
	}
	wantNoOthers(t, filepath.Dir(path), 1)
}

func TestReplaceFailsAndKeepsTheOldFile(t *testing.T) {
	path, broken := filepath.Join(t.TempDir(), "file"), errors.New("broken")
	replace(t, path, "one", nil)
	if _, err := writefile.Replace(path, nil, func(file *os.File) error { put("half")(file); return broken }); !errors.Is(err, broken) {
		t.Errorf("Replace = %v", err)
	}
	wantText(t, path, "one")
	wantNoOthers(t, filepath.Dir(path), 1)
}

func TestReplaceFollowsSymbolicLinks(t *testing.T) {
	folder := t.TempDir()
	other := filepath.Join(folder, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "link")
	for from, to := range map[string]string{path: "other/next", filepath.Join(other, "next"): "file"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"new", "newer"} { // the links lead nowhere, and then to a file
		replace(t, path, text, nil)
		wantText(t, filepath.Join(other, "file"), text)
	}
	if info, _ := os.Lstat(path); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	wantNoOthers(t, other, 2)
}

func TestReplaceWithEndlessLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, path); err != nil {
		t.Fatal(err)
	}
	if _, err := writefile.Replace(path, nil, put("x")); err == nil {
		t.Error("a link to itself was written to")
	}
}

func TestReplaceWritesToPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		got := make(chan string)
		go func() {
			text, _ := os.ReadFile(path)
			got <- string(text)
		}()
		replace(t, name, "through the pipe", &writefile.Options{Sync: true})
		if text := <-got; text != "through the pipe" {
			t.Errorf("the reader got %q", text)
		}
		if info, _ := os.Lstat(path); info.Mode()&fs.ModeNamedPipe == 0 {
			t.Fatal("the pipe was replaced")
		}
	}
}

func TestReplaceWritesToDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "null")
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("a device cannot be made here: ", err)
	}
	if file, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Skip("a device cannot be opened here: ", err)
	} else {
		file.Close()
	}
	replace(t, path, "gone", nil)
	if info, _ := os.Lstat(path); info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("the device has become %v", info.Mode())
	}
	wantNoOthers(t, filepath.Dir(path), 1)
}

// A file to which a descriptor appends keeps its content.
func TestReplaceWritesToDescriptor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put("before, ")(file)
	names := []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}
	want := "before, "
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(name+strconv.Itoa(int(file.Fd())), link); err != nil {
			t.Fatal(err)
		}
		replace(t, name+strconv.Itoa(int(file.Fd())), "one, ", nil)
		replace(t, link, "two, ", nil)
		want += "one, two, "
	}
	put("after")(file)
	wantText(t, path, want+"after")
}

func TestReplaceOfFolder(t *testing.T) {
	path := t.TempDir()
	if _, err := writefile.Replace(path, nil, put("x")); !errors.Is(err, unix.EISDIR) {
		t.Errorf("Replace of a folder = %v, want that it is one", err)
	}
	if _, err := writefile.Replace(filepath.Join(path, "none", "file"), nil, put("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Replace in no folder = %v", err)
	}
}
