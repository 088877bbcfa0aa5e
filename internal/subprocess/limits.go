// SPDX-License-Identifier: Apache-2.0

package subprocess

import "time"

// Limits bound the resources of each process of a server, as setrlimit(2) describes. A
// limit of zero or less leaves the limit that this program itself has.
type Limits struct {
	Memory    int64         // address space, in bytes (RLIMIT_AS)
	OpenFiles int           // RLIMIT_NOFILE
	CPU       time.Duration // processor time in all, rounded up to seconds (RLIMIT_CPU)
}
