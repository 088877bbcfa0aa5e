// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package subprocess

import (
	"errors"
	"runtime"
)

// supported returns an error if there are limits: other systems can set them only on
// the calling process.
func (l Limits) supported() error {
	if l == (Limits{}) {
		return nil
	}
	return errors.New("resource limits are not supported on " + runtime.GOOS + ": omit them, or set them in a script that starts the server")
}

func (Limits) set(int) error { return nil }
