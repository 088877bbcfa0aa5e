// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/consort-go/consort/internal/testing/childprocess"
)

// Variable is the environment variable that [Main] reads its script from. A test binary
// that finds it set should run as the server, see the package comment.
const Variable = "CONSORT_FAULTSERVER"

// Environ returns the environment entry that passes this script to [Main]: Variable, an
// equals sign and the script in JSON.
func (s Script) Environ() string {
	data, _ := json.Marshal(s) // strings and numbers: cannot fail
	return Variable + "=" + string(data)
}

// The exit statuses of [Main] that do not come from a script.
const (
	statusWrongScript = 2
	statusForgotten   = 99
)

// Main runs the server as a program. It speaks MCP over stdin and stdout, and ends when
// stdin ends. With -http, it prints its URL on stdout, as one line, serves HTTP there,
// and ends when stdin ends. The exit status is 0 or the one in the script; 1 if the
// ledger cannot be written or listening failed; 2 if args or the script are invalid; 99
// after [Script.Life].
//
//	-script FILE   the script, in the form of ParseScript
//	-json TEXT     the script itself
//	-http          serve HTTP
//	-addr ADDR     where to serve HTTP (a free port of 127.0.0.1)
//
// Without -script and -json, the script comes from [Variable], if it is set. The caller
// must end the process with the status that Main returns, immediately: work of the
// server that was running when it died continues until then.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("faultserverd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("script", "", "follow the script in `FILE`")
	inline := flags.String("json", os.Getenv(Variable), "follow the script `TEXT`")
	overHTTP := flags.Bool("http", false, "serve HTTP and print the URL")
	addr := flags.String("addr", "", "serve HTTP on `ADDR` (default a free port of 127.0.0.1)")
	if err := flags.Parse(args); err != nil {
		return statusWrongScript
	}
	via := viaStdio
	if *overHTTP {
		via = viaHTTP
	}
	script, err := readScript(*file, *inline, via)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return statusWrongScript
	}
	life := script.Life
	if life <= 0 {
		life = defaultLife
	}
	forgotten := time.NewTimer(life)
	defer forgotten.Stop()
	if *overHTTP {
		return mainHTTP(script, *addr, stdin, stdout, stderr, forgotten.C)
	}
	return mainStdio(script, stdin, stdout, stderr, forgotten.C)
}

func readScript(file, inline string, via transport) (Script, error) {
	var script Script
	data := []byte(inline)
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return script, fmt.Errorf("faultserver: the script: %w", err)
		}
	}
	if len(data) == 0 {
		return script, nil
	}
	script, err := ParseScript(data)
	if err != nil {
		return script, err
	}
	return script, script.check(via)
}

func mainStdio(script Script, stdin io.Reader, stdout, stderr io.Writer, forgotten <-chan time.Time) int {
	r, err := newRecorder(script.Dir)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	s := newServer(&script, viaStdio, newCounter(script.Dir), r)
	s.stderr = stderr
	out := newStdioLink(stdout, s.ctx.Done())
	s.standing = out
	go s.start()
	go s.serveStdio(stdin, out)
	return s.wait(forgotten)
}

func mainHTTP(script Script, addr string, stdin io.Reader, stdout, stderr io.Writer, forgotten <-chan time.Time) int {
	server, err := startHTTP(script, &Options{Addr: addr}, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintln(stdout, server.URL())
	s := server.current().core
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // until it ends or fails
		s.end(0)
	}()
	return s.wait(forgotten)
}

// wait waits for the end of the server and returns its exit status.
func (s *server) wait(forgotten <-chan time.Time) int {
	select {
	case <-s.ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.status
	case <-forgotten:
		s.end(statusForgotten)
		return statusForgotten
	}
}

// Process is a server over HTTP in a process of its own.
type Process struct {
	// URL is the endpoint of the server.
	URL string

	child *childprocess.Process
}

// Launch starts cmd, a program that runs [Main] with -http, and returns once it
// listens. It must do so within 30 seconds. Stdin and Stdout of cmd must not be set.
func Launch(cmd *exec.Cmd) (*Process, error) {
	child, url, err := childprocess.Start(cmd)
	p := &Process{URL: url, child: child}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("faultserver: launch: %w", err), p.Close())
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.child.PID() }

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() { p.child.Kill() }

// Close ends the process and waits for it; after ten seconds it is killed. The error
// reports a status other than 0. Further calls return the same.
func (p *Process) Close() error {
	if err := p.child.Close(); err != nil {
		return fmt.Errorf("faultserver: the process: %w", err)
	}
	return nil
}
