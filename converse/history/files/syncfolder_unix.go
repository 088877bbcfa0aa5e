// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"os"
)

// syncFolder returns when the names in a folder are on the disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
