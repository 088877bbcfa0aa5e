// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/consort-go/consort/internal/testing/childprocess"
)

// Main runs the server as a program: it serves the script named in args, prints its base
// URL as one line on stdout, and returns when stdin ends. It returns the exit status: 0;
// 1 if a request did not follow the script, or listening failed, with the reasons on
// stderr; 2 if args or the script are wrong.
//
//	-script FILE   the script, in the form of ParseScript
//	-addr ADDR     where to listen (a free port of 127.0.0.1)
//	-key KEY       the only API key that is accepted
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
	io.Copy(io.Discard, stdin) // until it ends or fails
	server.Close()
	faults := server.Faults()
	for _, fault := range faults {
		fmt.Fprintln(stderr, fault)
	}
	return min(len(faults), 1)
}

// Process is a server that runs in its own process.
type Process struct {
	// URL is the base URL of the server.
	URL string

	child  *childprocess.Process
	stderr *bytes.Buffer
}

// Launch starts cmd, a program that runs [Main], and returns when it listens, which must
// happen within 30 seconds. The caller must not set the streams of cmd.
func Launch(cmd *exec.Cmd) (*Process, error) {
	p := &Process{stderr: new(bytes.Buffer)}
	cmd.Stderr = p.stderr
	var err error
	if p.child, p.URL, err = childprocess.Start(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("openaiserver: %w", err), p.Close())
	}
	return p, nil
}

// Close ends the process and waits for it; after ten seconds it kills the process. If the
// process failed, the error contains its standard error, which lists the faults of the
// requests. Further calls return the same error.
func (p *Process) Close() error {
	if err := p.child.Close(); err != nil {
		return fmt.Errorf("openaiserver: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
