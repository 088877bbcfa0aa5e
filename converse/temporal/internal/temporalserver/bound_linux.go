// SPDX-License-Identifier: Apache-2.0

package temporalserver

import (
	"os/exec"
	"syscall"
)

// Bind makes a process die with the test that starts it, even if the test is killed.
func Bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
