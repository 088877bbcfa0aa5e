// SPDX-License-Identifier: Apache-2.0

package writefile

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// isFixed reports whether the pattern of a temporary file has no random part.
func isFixed(pattern string) bool { return !strings.Contains(pattern, "*") }

// isDescriptor reports whether a path names an open descriptor of a process. The target
// of such a link need not be a path, and the file must not be replaced, because the
// descriptor would keep the old file.
func isDescriptor(name string) bool {
	folder := path.Dir(filepath.ToSlash(name))
	return folder == "/dev/fd" || strings.HasPrefix(folder, "/proc/") && path.Base(folder) == "fd"
}

// descriptor returns the descriptor of this process that a path names.
func descriptor(name string) (uintptr, bool) {
	if !isDescriptor(name) {
		return 0, false
	}
	folder := path.Dir(filepath.ToSlash(name))
	own := "/proc/" + strconv.Itoa(os.Getpid()) + "/"
	if folder != "/dev/fd" && !strings.HasPrefix(folder, own) {
		return 0, false
	}
	fd, err := strconv.ParseUint(path.Base(filepath.ToSlash(name)), 10, 31)
	return uintptr(fd), err == nil
}
