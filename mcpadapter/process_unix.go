// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter

import "syscall"

// processGroup makes the server the leader of a process group of its own, so
// that signals reach the children of wrappers such as sh and npx, and a Ctrl-C
// on our terminal does not reach it. A child that leaves the group (setsid)
// escapes; it sees the end of stdin like all others.
func processGroup() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	return attr
}

func (p *process) terminate() { p.signal(syscall.SIGTERM) }
func (p *process) killGroup() { p.signal(syscall.SIGKILL) }

// signal reaches the group or, when the leader left it, the leader. The number
// of the group cannot pass to strangers while it has a member.
func (p *process) signal(sig syscall.Signal) {
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

// groupAlive reports whether the group has a member, once the leader was
// reaped. Members whose parent died become ours to reap when this program is
// the first of its container or a subreaper.
func (p *process) groupAlive() bool {
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
