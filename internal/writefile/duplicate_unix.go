// SPDX-License-Identifier: Apache-2.0

//go:build unix

package writefile

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate duplicates a descriptor of this process, with its offset and mode. Opening
// /dev/stdout by name would start writing at the beginning of a file that others append
// to.
func duplicate(fd uintptr, name string) (*os.File, error) {
	other, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(other), name), nil
}
