// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package temporalserver

import "os/exec"

// Bind does nothing: this system cannot make a process die with the test that starts
// it.
func Bind(*exec.Cmd) {}
