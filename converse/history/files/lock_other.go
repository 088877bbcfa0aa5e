// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package files

import (
	"context"
	"os"
)

// The standard library has no file locks here: only one process may use the folder.

func tryLock(*os.File, bool) (bool, error) { return true, nil }

func lock(context.Context, *os.File, bool) error { return nil }

// syncFolder does nothing: folders cannot be synced here.
func syncFolder(string) error { return nil }
