// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// markVar marks the processes of a server, children of children included.
const markVar = "CONSORT_SOAK_MARK"

// pids lists all processes.
func pids() (list []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// status is the state and the parent of a process; the zero state if it does not exist
// (proc_pid_stat(5)).
func status(pid int) (state byte, parent int) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may hold anything
	if len(fields) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent
}

// hasMark reports whether the process has the mark. One that has ended, or belongs to
// another user, does not.
func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && strings.Contains("\x00"+string(env), "\x00"+markVar+"="+mark+"\x00")
}

// marked lists the processes of a mark.
func marked(mark string) (list []int) {
	for _, pid := range pids() {
		if hasMark(pid, mark) {
			list = append(list, pid)
		}
	}
	return list
}

// grip returns a handle of the child process with a mark, or nil if it does not exist. It
// refers to that process and to no later one with the same number, if the kernel has
// pidfd_open(2).
func grip(mark string) *os.Process {
	for _, pid := range pids() {
		if _, parent := status(pid); parent != os.Getpid() || !hasMark(pid, mark) {
			continue
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if hasMark(pid, mark) {
			return process
		}
		_ = process.Release()
	}
	return nil
}

// send sends one signal to the process of a mark, and reports whether it
// arrived.
func send(mark string, signal syscall.Signal) bool {
	process := grip(mark)
	if process == nil {
		return false
	}
	defer process.Release()
	return process.Signal(signal) == nil
}

// children lists the processes that this program started and that are there,
// as zombies too.
func children() (list []int) {
	for _, pid := range pids() {
		if state, parent := status(pid); state != 0 && parent == os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}
