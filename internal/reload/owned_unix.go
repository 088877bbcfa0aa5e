// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reload

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// owned makes sure that a folder belongs to the user of this process, and that no other
// user can put another one in its place.
func owned(folder string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", folder)
	}
	parent := filepath.Dir(folder)
	above, err := os.Stat(parent)
	switch {
	case err != nil:
		return err
	case above.Mode().Perm()&0o022 != 0 && above.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("other users can replace %s; remove their permission to write to %s", folder, parent)
	}
	return nil
}
