// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/testing/installed"
)

// Python runs scripts with stubs that its tools generated from a protobuf file.
type Python struct {
	t     *testing.T
	path  string
	stubs string
}

// NeedPython finds a Python with grpcio and generates the stubs of a protobuf file, which
// is named relative to folder. Without such a Python it ends the test.
func NeedPython(t *testing.T, folder, file string) *Python {
	t.Helper()
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if installed.Hidden() || exec.CommandContext(t.Context(), path, "-c", "import grpc, grpc_tools").Run() != nil {
			continue
		}
		p := &Python{t: t, path: path, stubs: t.TempDir()}
		generate := exec.CommandContext(t.Context(), path, "-m", "grpc_tools.protoc", "-I"+folder, "--python_out="+p.stubs, "--grpc_python_out="+p.stubs, file)
		if out, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return p
	}
	installed.Missing(t, errNoPython)
	return nil
}

var errNoPython = errors.New("there is no Python with grpcio: run .ci/install-servers as root, or on Debian " +
	"apt-get install python3-grpcio python3-grpc-tools")

// Command returns the command of a script, which can import the stubs.
func (p *Python) Command(script string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.stubs, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// PythonServer is a process that serves at an address of this machine.
type PythonServer struct {
	Address string

	python *Python
	script string
	args   []string
	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.Closer
}

// Serve starts a script that takes a port as its last argument, 0 for any, and prints the
// port that it serves at. It ends with the test, or with this process.
func (p *Python) Serve(script string, args ...string) *PythonServer {
	p.t.Helper()
	s := &PythonServer{Address: "127.0.0.1:0", python: p, script: script, args: args}
	s.Start()
	p.t.Cleanup(s.Kill)
	return s
}

// Start starts the server at its address, after [PythonServer.Kill].
func (s *PythonServer) Start() {
	t := s.python.t
	t.Helper()
	port := s.Address[strings.LastIndex(s.Address, ":")+1:]
	cmd := s.python.Command(s.script, append(append([]string(nil), s.args...), port)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.stdin = cmd, stdin
	port, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(port) == "0" {
		t.Fatalf("the server says its port is %q: %v", port, err)
	}
	s.Address = "127.0.0.1:" + strings.TrimSpace(port)
}

// Kill kills the server, which closes all its connections.
func (s *PythonServer) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stdin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
