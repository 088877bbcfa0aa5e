// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package writefile

import "os"

// openLock opens the file that is locked, and creates it.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
