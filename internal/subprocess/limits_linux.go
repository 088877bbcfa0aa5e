// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func (Limits) supported() error { return nil }

// set applies the limits to a running process (prlimit(2)).
func (l Limits) set(pid int) error {
	seconds := l.CPU / time.Second
	if l.CPU%time.Second > 0 {
		seconds++
	}
	for _, limit := range []struct {
		name     string
		resource int
		most     int64
		beyond   uint64 // added to the hard limit
	}{
		{"memory", unix.RLIMIT_AS, l.Memory, 0},
		{"open files", unix.RLIMIT_NOFILE, int64(l.OpenFiles), 0},
		{"CPU time", unix.RLIMIT_CPU, int64(seconds), 1}, // with an equal hard limit, SIGKILL would come first
	} {
		if limit.most <= 0 {
			continue
		}
		most := uint64(limit.most)
		err := unix.Prlimit(pid, limit.resource, &unix.Rlimit{Cur: most, Max: most + limit.beyond}, nil)
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("limiting its %s: %w: the limit is above the hard one of this program (ulimit -H), or the server runs as another user", limit.name, err)
		}
		if err != nil {
			return fmt.Errorf("limiting its %s: %w", limit.name, err)
		}
	}
	return nil
}
