// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Main is the server as a program: it serves the script that args name, prints
// its base URL on stdout, one line, and leaves when stdin ends. The exit status
// is 0; 1 when a request departed from the script, or listening failed, with
// what was wrong on stderr; 2 when args or the script are wrong.
//
//	-script FILE   the script, in the form of ParseScript
//	-addr ADDR     where to listen (a free port of 127.0.0.1)
//	-key KEY       the only API key that is let in
//	-trust         do not read or check requests
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("openaiserverd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("script", "", "serve the script in `FILE`")
	options := Options{Record: -1}
	flags.StringVar(&options.Addr, "addr", "", "listen on `ADDR` (default a free port of 127.0.0.1)")
	flags.StringVar(&options.APIKey, "key", "", "let in this API `KEY` alone")
	flags.BoolVar(&options.Trust, "trust", false, "do not read or check requests")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var script Script
	if *path != "" {
		data, err := os.ReadFile(*path)
		if err == nil {
			script, err = ParseScript(data)
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	server, err := Start(script, &options)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintln(stdout, server.URL())
	io.Copy(io.Discard, stdin) // until it ends, well or not
	server.Close()
	faults := server.Faults()
	for _, fault := range faults {
		fmt.Fprintln(stderr, fault)
	}
	return min(len(faults), 1)
}

// Process is a server that runs as a process of its own.
type Process struct {
	// URL is its base URL.
	URL string

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
	once   sync.Once
	err    error
}

// The times a process gets to start and to end.
const (
	startTimeout = 30 * time.Second
	endTimeout   = 10 * time.Second
)

// Launch starts cmd, a program that runs [Main], and returns once it listens. It
// must do so within 30 seconds. The streams of cmd must not be set.
func Launch(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, stderr: new(bytes.Buffer)}
	cmd.Stderr = p.stderr
	cmd.WaitDelay = endTimeout
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("openaiserver: %w", err)
	}
	p.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("openaiserver: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("openaiserver: %w", err)
	}
	timer := time.AfterFunc(startTimeout, func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(io.LimitReader(stdout, 4096)).ReadString('\n')
	timer.Stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("openaiserver: the process printed no URL: %w", err), p.Close())
	}
	p.URL = strings.TrimSpace(line)
	return p, nil
}

// Close ends the process and waits for it; after ten seconds it is killed. The
// error holds what the process wrote on standard error when it did not end
// well: what was wrong with the requests. Further calls return the same.
func (p *Process) Close() error {
	p.once.Do(func() {
		p.stdin.Close() // the process notices, or is killed
		timer := time.AfterFunc(endTimeout, func() { p.cmd.Process.Kill() })
		defer timer.Stop()
		if err := p.cmd.Wait(); err != nil {
			p.err = fmt.Errorf("openaiserver: %w: %s", err, strings.TrimSpace(p.stderr.String()))
		}
	})
	return p.err
}
