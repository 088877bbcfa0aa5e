// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "write" {
		if err := write(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// write is a program that adds tasks, and prints the id of each that is kept.
func write(path, user, count string) error {
	id, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	ctx := invoker.WithTrusted(context.Background(), User.Value(id))
	book, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer book.Close()
	book.patience = time.Minute // a disk that is busy can need more than the default
	for i := range n {
		one, err := book.AddTask(ctx, NewTask{fmt.Sprint("task ", i)})
		if err != nil {
			return err
		}
		fmt.Println(one.Task.ID)
	}
	return nil
}

// writer returns the program that adds tasks, to be started.
func writer(t *testing.T, path string, user, count int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "write", path, fmt.Sprint(user), fmt.Sprint(count))
	cmd.Stderr = os.Stderr
	return cmd
}

// Three processes create the database and write to it concurrently, while this one reads
// and writes. Nothing is lost, and no caller is asked to retry.
func TestSeveralProcesses(t *testing.T) {
	path := t.TempDir() + "/tasks.db"
	const each = 100
	var group sync.WaitGroup
	for user := range 3 {
		group.Go(func() {
			out, err := writer(t, path, user, each).Output()
			if lines := strings.Count(string(out), "\n"); err != nil || lines != each {
				t.Errorf("user %d: %d tasks, %v", user, lines, err)
			}
		})
	}
	group.Go(func() {
		book := openAt(t, path)
		book.patience = time.Minute
		for i := range each {
			add(t, book, 3, "here")
			if got := list(t, book, 3); len(got) != i+1 {
				t.Errorf("%d tasks, want %d", len(got), i+1)
			}
		}
	})
	group.Wait()
	book := openAt(t, path)
	for user := range int64(4) {
		if got := list(t, book, user); len(got) != each {
			t.Errorf("user %d has %d tasks", user, len(got))
		}
	}
}

// A process is killed while it writes. What it said is kept.
func TestAProcessThatIsKilled(t *testing.T) {
	path := t.TempDir() + "/tasks.db"
	for range 3 {
		cmd := writer(t, path, 1, 1_000_000)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := int64(0)
		lines := bufio.NewScanner(stdout)
		for n := 0; lines.Scan(); n++ {
			if n == 20 {
				cmd.Process.Kill()
			}
			if said, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Wait()
		book := openAt(t, path)
		var last int64
		var verdict string
		if err := book.read.QueryRowContext(t.Context(), "SELECT max(id) FROM tasks").Scan(&last); err != nil || last != said && last != said+1 {
			t.Errorf("the last task is %d, it said %d, %v", last, said, err)
		}
		if err := book.read.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Errorf("the database is %q, %v", verdict, err)
		}
	}
}
