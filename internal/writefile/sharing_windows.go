// SPDX-License-Identifier: Apache-2.0

package writefile

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isSharing reports whether a rename can have failed because a file was open. The same error
// can report a missing permission.
func isSharing(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}
