// SPDX-License-Identifier: Apache-2.0

package devserver

import (
	"os/exec"
	"syscall"
)

// Bind has a process die with the test that starts it, even if that is killed.
func Bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
