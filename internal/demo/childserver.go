// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// childServer is a server in a process of its own that listens on a port.
type childServer struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer // closing it asks the process to exit
}

// How long a child process may take to print its URL, and to exit.
const (
	childStart = 20 * time.Second
	childGrace = 3 * time.Second
)

// startChild starts a process and waits until it has printed its URL.
func startChild(ctx context.Context, cmd *exec.Cmd, environment ...string) (*childServer, error) {
	cmd.Stderr = os.Stderr // it prints nothing unless it fails
	cmd.Env = append(os.Environ(), environment...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n := &childServer{cmd: cmd, stdin: stdin}
	ctx, cancel := context.WithTimeout(ctx, childStart)
	defer cancel()
	kill := context.AfterFunc(ctx, func() { cmd.Process.Kill() }) // ends the read below
	line, err := bufio.NewReader(io.LimitReader(stdout, 1000)).ReadString('\n')
	if !kill() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	n.url = strings.TrimSpace(line)
	return n, nil
}

// stop asks the process to exit, kills it if it does not, and waits for it.
func (n *childServer) stop() error {
	n.stdin.Close()
	impatient := time.AfterFunc(childGrace, func() { n.cmd.Process.Kill() })
	defer impatient.Stop()
	if err := n.cmd.Wait(); err != nil {
		return fmt.Errorf("the server %s: %w", n.url, err)
	}
	return nil
}
