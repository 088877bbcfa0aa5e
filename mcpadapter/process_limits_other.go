// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mcpadapter

import (
	"errors"
	"runtime"
)

// supported refuses limits: other systems set them only on the process that
// asks for it.
func (l ResourceLimits) supported() error {
	if l == (ResourceLimits{}) {
		return nil
	}
	return errors.New("resource limits are not supported on " + runtime.GOOS + ": leave them out, or set them in a script that starts the server")
}

func (ResourceLimits) set(int) error { return nil }
