// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package subprocess

import "syscall"

// dieWithParent does nothing: this system has no parent-death signal. If this program
// is killed, the server sees the end of stdin.
func dieWithParent(*syscall.SysProcAttr) {}

// onlyZombies cannot be determined here; the system's init reaps zombies soon.
func onlyZombies(int) bool { return false }
