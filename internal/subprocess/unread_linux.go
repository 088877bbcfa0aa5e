// SPDX-License-Identifier: Apache-2.0

package subprocess

import "golang.org/x/sys/unix"

// Unread returns the number of bytes written to the server that it has not read yet
// (FIONREAD, also called TIOCINQ, of ioctl_pipe(2), which also works on the writing
// end). known is false if it cannot be determined.
func (p *Process) Unread() (count int, known bool) {
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return 0, false
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { count, asked = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil || asked != nil {
		return 0, false
	}
	return count, true
}
