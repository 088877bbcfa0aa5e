// SPDX-License-Identifier: Apache-2.0

//go:build unix

package subprocess

import "syscall"

// processGroup makes the server the leader of its own process group, so that signals
// reach the children of wrappers such as sh and npx, and a Ctrl-C on our terminal does
// not reach them. A child that leaves the group (setsid) gets no signals, but it too
// sees the end of stdin.
func processGroup() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	return attr
}

func (p *Process) terminate() { p.signal(syscall.SIGTERM) }
func (p *Process) killGroup() { p.signal(syscall.SIGKILL) }

// signal sends sig to the group or, if the leader has left it, to the leader. The
// number of the group is not reused while it has a member.
func (p *Process) signal(sig syscall.Signal) {
	if !p.hasExited() {
		if syscall.Kill(-p.cmd.Process.Pid, sig) != nil {
			_ = p.cmd.Process.Signal(sig)
		}
		return
	}
	if p.groupAlive() {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// groupAlive reports whether the leader, or any other member of the group, is alive.
// Members whose parent died must be reaped here if this program is the first process of
// its container or a subreaper.
func (p *Process) groupAlive() bool {
	group := -p.cmd.Process.Pid
	if !p.hasExited() {
		return true
	}
	for {
		reaped, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && reaped <= 0 {
			break
		}
	}
	return syscall.Kill(group, 0) == nil && !onlyZombies(p.cmd.Process.Pid)
}
