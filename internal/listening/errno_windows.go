// SPDX-License-Identifier: Apache-2.0

package listening

import "golang.org/x/sys/windows"

// The errors of sockets, for [errors.Is]. Windows has other numbers than the constants of package
// syscall with these names.
const (
	ErrAddressInUse = windows.WSAEADDRINUSE   // another program listens at the address
	ErrNotPermitted = windows.WSAEACCES       // the user may not listen there
	ErrRefused      = windows.WSAECONNREFUSED // no program listens at the address
)
