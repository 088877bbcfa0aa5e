// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package subprocess

import "syscall"

// Without process groups (Windows and others) only the server itself is ended, and it
// is killed where other systems send SIGTERM. Children of a wrapper such as npx.cmd
// only see the end of stdin.

func processGroup() *syscall.SysProcAttr { return nil }

func (p *Process) terminate()       { p.killGroup() }
func (p *Process) killGroup()       { _ = p.cmd.Process.Kill() }
func (p *Process) groupAlive() bool { return !p.hasExited() }
