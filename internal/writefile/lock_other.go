// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package writefile

// Lock does nothing: the standard library has no file locks here. Of two processes that
// write at the same moment, one may undo the change of the other.
func Lock(string) (unlock func(), err error) { return func() {}, nil }

// TryLock does nothing, like [Lock].
func TryLock(string) (unlock func(), err error) { return func() {}, nil }
