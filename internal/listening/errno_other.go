// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package listening

import "syscall"

// The errors of sockets, for [errors.Is].
const (
	ErrAddressInUse = syscall.EADDRINUSE   // another program listens at the address
	ErrNotPermitted = syscall.EACCES       // the user may not listen there
	ErrRefused      = syscall.ECONNREFUSED // no program listens at the address
)
