// SPDX-License-Identifier: Apache-2.0

//go:build unix

package listening

import (
	"math"
	"syscall"
)

// openFiles returns how many files this process may have open.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return min(uint64(limit.Cur), math.MaxInt32)
}
