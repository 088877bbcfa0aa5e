// SPDX-License-Identifier: Apache-2.0

// Package childprocess runs servers for tests in processes of their own: programs that print
// their URL, and end when their standard input ends.
package childprocess

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Process is the process of a program.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	once  sync.Once
	err   error
}

// The time limits for the start and the end of a process.
const (
	startTimeout = 30 * time.Second
	endTimeout   = 10 * time.Second
)

// Start starts cmd and returns the URL, the first line of its standard output, which must
// come within 30 seconds. The caller must not set the standard input and output of cmd, and
// must close the process, also after an error.
func Start(cmd *exec.Cmd) (p *Process, url string, err error) {
	p = &Process{cmd: cmd}
	cmd.WaitDelay = endTimeout
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return p, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return p, "", err
	}
	if err := cmd.Start(); err != nil {
		return p, "", err
	}
	timer := time.AfterFunc(startTimeout, p.kill)
	line, err := bufio.NewReader(io.LimitReader(stdout, 4096)).ReadString('\n')
	timer.Stop()
	if err != nil {
		return p, "", fmt.Errorf("the process printed no URL: %w", err)
	}
	return p, strings.TrimSpace(line), nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func (p *Process) kill() { _ = p.cmd.Process.Kill() }

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() {
	p.kill()
	_ = p.Close()
}

// Close ends the process, if it was started, and waits for it; after ten seconds it is
// killed. The error reports a status other than 0. Further calls return the same.
func (p *Process) Close() error {
	p.once.Do(func() {
		if p.cmd.Process == nil {
			return
		}
		_ = p.stdin.Close() // the process ends, or is killed
		timer := time.AfterFunc(endTimeout, p.kill)
		defer timer.Stop()
		p.err = p.cmd.Wait()
	})
	return p.err
}
