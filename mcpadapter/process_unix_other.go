// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package mcpadapter

import "syscall"

// dieWithParent does nothing: this system has no parent-death signal. A server
// of a program that was killed sees the end of stdin.
func dieWithParent(*syscall.SysProcAttr) {}

// onlyZombies is not known here; the system's init reaps them soon.
func onlyZombies(int) bool { return false }
