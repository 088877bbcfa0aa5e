// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package writefile

import (
	"errors"
	"os"
)

// duplicate fails, because this system has no paths to descriptors.
func duplicate(_ uintptr, name string) (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}
