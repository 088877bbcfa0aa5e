// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// alive reports whether there is a process with this id.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGTERM) }

func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*patience)
}
