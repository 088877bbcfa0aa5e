// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A process that closes any descriptor of a file releases all of its locks on that file
// (fcntl(2), POSIX record locks), including those of SQLite: another process could then
// delete the write-ahead log that this one writes to.
func TestOpenKeepsTheLocksOfOtherStores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.db")
	openAt(t, path, nil)
	if locks := locksOn(t, path); len(locks) == 0 {
		t.Fatal("an open store has no lock on its file: this test does not see locks")
	}
	openAt(t, path, nil)
	if locks := locksOn(t, path); len(locks) == 0 {
		t.Error("the first store has lost its lock when a second one was opened")
	}
}

// locksOn returns the locks that this process has on a file.
func locksOn(t *testing.T, path string) (locks []string) {
	t.Helper()
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skip("the locks of the system cannot be read: ", err)
	}
	pid, inode := fmt.Sprint(os.Getpid()), fmt.Sprint(stat.Ino)
	for line := range strings.Lines(string(text)) {
		// 1: POSIX  ADVISORY  READ 4711 fd:01:1234 1073741826 1073742335
		fields := strings.Fields(line)
		if len(fields) >= 6 && fields[4] == pid && strings.HasSuffix(fields[5], ":"+inode) {
			locks = append(locks, line)
		}
	}
	return locks
}
