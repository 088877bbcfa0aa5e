// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import "os"

// Supported reports whether the system has locks. Without them, every attempt to lock a
// file succeeds at once.
const Supported = false

func try(*os.File, bool) (bool, error) { return true, nil }
