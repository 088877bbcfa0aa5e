// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/writefile"
)

// The file is private, and has neither arguments nor the address of the server.
func TestTheFileHasNoSecrets(t *testing.T) {
	store := storeIn(t)
	store.now = func() time.Time { return time.Date(2026, 3, 1, 9, 30, 0, 5, time.UTC) }
	k := key{"files", "write", "sha256:1", "server --token t0ken"}
	if err := store.add(k, Server{Address: k.address, Label: "server in /work"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(store.Path())
	if err != nil || strings.Contains(string(text), "t0ken") || strings.Contains(string(text), "s3cret") {
		t.Errorf("%s, %v", text, err)
	}
	for path, want := range map[string]os.FileMode{store.Path(): 0o600, filepath.Dir(store.Path()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	stored, err := store.List()
	if err != nil || len(stored) != 1 {
		t.Fatalf("%+v, %v", stored, err)
	}
	one := stored[0]
	if one.Name() != "files__write" || one.Server != "server in /work" || len(one.Address) != 64 ||
		one.Allowed != time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC) {
		t.Errorf("%+v", one)
	}
	other := storeIn(t)
	if err := other.add(k, Server{}); err != nil {
		t.Fatal(err)
	}
	if stored, _ := other.List(); stored[0].Address == one.Address {
		t.Error("the hash of an address is the same in two files, so it can be guessed")
	}
}

// Of one tool of one server, only the last definition is allowed; the same names of
// another server are apart.
func TestOneDefinitionForEachTool(t *testing.T) {
	store := storeIn(t)
	for _, k := range []key{{"e", "t", "1", "x"}, {"e", "t", "2", "x"}, {"e", "t", "1", "y"}, {"a", "t", "1", "x"}} {
		if err := store.add(k, Server{}); err != nil {
			t.Fatal(err)
		}
	}
	for k, want := range map[key]bool{
		{"e", "t", "1", "x"}: false, {"e", "t", "2", "x"}: true, {"e", "t", "1", "y"}: true, {"e", "t", "2", "y"}: false, {"a", "t", "1", "x"}: true,
	} {
		if allowed, changed, err := store.find(k); allowed != want || changed == want || err != nil {
			t.Errorf("%+v: %v, %v, %v", k, allowed, changed, err)
		}
	}
	stored, err := store.List()
	if err != nil || len(stored) != 3 || stored[0].Ensemble != "a" {
		t.Errorf("%+v, %v", stored, err)
	}
	revoked, err := store.Revoke(func(one *Stored) bool { return one.Ensemble == "e" })
	if err != nil || len(revoked) != 2 {
		t.Errorf("%+v, %v", revoked, err)
	}
	if stored, _ := store.List(); len(stored) != 1 {
		t.Errorf("left are %+v", stored)
	}
	if err := store.Remove(); err != nil {
		t.Error(err)
	}
	if stored, err := store.List(); len(stored) != 0 || err != nil {
		t.Errorf("%+v, %v", stored, err)
	}
	if err := store.Remove(); err != nil {
		t.Error(err)
	}
}

// Remove does not remove the file while another process writes it: that process would restore
// what it has read.
func TestRemoveDuringAWrite(t *testing.T) {
	if !filelock.Supported {
		t.Skip("there are no locks on this system")
	}
	store := storeIn(t)
	if err := store.add(key{"files", "write", "sha256:1", "server"}, Server{}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		unlock, err := writefile.Lock(store.Path())
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(); err == nil || !strings.Contains(err.Error(), "try again") {
			t.Errorf("Remove: %v", err)
		}
		if stored, err := store.List(); len(stored) != 1 || err != nil {
			t.Errorf("there are %+v, %v", stored, err)
		}
		unlock()
		if err := store.Remove(); err != nil {
			t.Error(err)
		}
	})
	lock := store.Path() + ".lock"
	if err := errors.Join(os.WriteFile(store.Path(), []byte("damaged"), 0o600), os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(); err != nil { // nothing can lock the file
		t.Error(err)
	}
	if _, err := os.Stat(store.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// adderVar is set in a process that adds approvals to the file at its value.
const adderVar = "CONSORT_TEST_APPROVALS"

const added = 30

func TestMain(m *testing.M) {
	if path := os.Getenv(adderVar); path != "" {
		os.Exit(beAdder(path))
	}
	os.Exit(m.Run())
}

func beAdder(path string) int {
	store := NewStore(path)
	for i := range added {
		if err := store.add(key{fmt.Sprint("p", os.Getpid()), fmt.Sprint(i), "1", "x"}, Server{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// Processes that store at once lose nothing of each other.
func TestSeveralProcessesStoreAtOnce(t *testing.T) {
	if !filelock.Supported {
		t.Skip("there are no locks on this system")
	}
	store := storeIn(t)
	var processes []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), adderVar+"="+store.Path()), os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if stored, err := store.List(); len(stored) != 3*added || err != nil {
		t.Errorf("%d approvals are stored, want %d; %v", len(stored), 3*added, err)
	}
	names, err := os.ReadDir(filepath.Dir(store.Path()))
	if err != nil || len(names) != 2 { // with the lock
		t.Errorf("the folder has %v, %v", names, err)
	}
}
