// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reload

import "syscall"

// nonblocking opens a pipe without waiting for its writer.
const nonblocking = syscall.O_NONBLOCK
