// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent makes the kernel kill the server when this program is killed. Only the
// group's leader gets the signal; its children see the end of stdin.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// onlyZombies reports whether all processes of a group are dead and only wait to be
// reaped. The init process of a container is often slow to do that, or never does it.
func onlyZombies(group int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if state, member := groupState(name, group); member && state != 'Z' && state != 'X' {
			return false
		}
	}
	return true
}

// groupState reads the state of a process from its status line, if it is in the group:
// pid (name) state parent group (proc_pid_stat(5)).
func groupState(pid string, group int) (state byte, member bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false // the process has ended
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may contain any character
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
		return 0, false
	}
	return fields[0][0], true
}
