//go:build unix

// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// ownGroup puts a process into a group of its own, so that what the terminal
// sends to ours does not reach it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
