// SPDX-License-Identifier: Apache-2.0

// Package ramdisk finds a place in memory for the files of tests. Some disks need ten times
// as long to create a file.
package ramdisk

import (
	"os"
	"syscall"
)

// Folder returns a folder in memory that has at least 2 GiB of room, which is more than any
// test needs. Otherwise it returns "", which package os takes for the folder of temporary files.
func Folder() string {
	const folder, room = "/dev/shm", 2 << 30
	const noexec = 0x8 // ST_NOEXEC of statfs(2): tests also build programs there
	var about syscall.Statfs_t
	if err := syscall.Statfs(folder, &about); err != nil || about.Bavail*uint64(about.Bsize) < room || about.Flags&noexec != 0 {
		return ""
	}
	return folder
}

// Use lets the tests of a program, and the processes that they start, have their folders for
// temporary files there, unless TMPDIR says otherwise. TestMain calls it.
func Use() {
	if folder := Folder(); folder != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", folder)
	}
}
