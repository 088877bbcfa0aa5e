// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// python runs programs over stubs that were generated from the original contract.
type python struct {
	t     *testing.T
	path  string
	stubs string
}

// needPython finds a Python with grpcio. Where there is none the test is
// skipped, or fails if CONSORT_REAL is "required", as in .ci/run.
func needPython(t *testing.T) *python {
	t.Helper()
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), path, "-c", "import grpc, grpc_tools").Run() != nil {
			continue
		}
		p := &python{t: t, path: path, stubs: t.TempDir()}
		generate := exec.CommandContext(t.Context(), path, "-m", "grpc_tools.protoc", "-Itestdata", "--python_out="+p.stubs, "--grpc_python_out="+p.stubs, "mcp/v1/mcp_tool.proto")
		if out, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return p
	}
	const missing = "there is no Python with grpcio; on Debian: apt-get install python3-grpcio python3-grpc-tools"
	if os.Getenv("CONSORT_REAL") == "required" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return nil
}

func (p *python) command(script string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.stubs, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// pythonServer is a process that serves at an address.
type pythonServer struct {
	python  *python
	tools   string
	address string
	mu      sync.Mutex
	cmd     *exec.Cmd
	stdin   io.Closer
}

func (p *python) serve(tools string) *pythonServer {
	p.t.Helper()
	s := &pythonServer{python: p, tools: tools, address: "127.0.0.1:0"}
	s.start()
	p.t.Cleanup(s.kill)
	return s
}

func (s *pythonServer) start() {
	t := s.python.t
	t.Helper()
	cmd := s.python.command("testdata/server.py", s.tools, s.address[strings.LastIndex(s.address, ":")+1:])
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
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(port) == "0" {
		t.Fatalf("the server says its port is %q: %v", port, err)
	}
	s.address = "127.0.0.1:" + strings.TrimSpace(port)
}

func (s *pythonServer) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stdin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// The suite of sources, over a server in Python that knows the original
// contract alone.
func TestSourcesInPython(t *testing.T) {
	t.Parallel()
	needPython(t)
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		server := needPython(t).serve("suite")
		return ensembletest.Harness{
			Source:     grpctool.Source(server.address, plaintext()),
			Lose:       func() { server.kill(); server.start() },
			NoProgress: true,
		}
	})
}

// A server in Python is listed and called, and its errors are failures.
func TestPythonServer(t *testing.T) {
	server := needPython(t).serve("farm")
	if got := listed(t, server.address, &grpctool.Options{Plaintext: true, Category: "search"}); !reflect.DeepEqual(got, []string{"search_notes"}) {
		t.Errorf("the category search has %q", got)
	}
	connection := opened(t, grpctool.Source(server.address, &grpctool.Options{Plaintext: true, Caller: "advisor"}))
	if got := connection.Peer().Protocol; got != "gRPC farmer_power.mcp.v1" {
		t.Errorf("the protocol is %q", got)
	}
	farmer := tool(t, connection, "get_farmer")
	output, err := farmer.Invoke(within(t), &invoker.Call{Arguments: []byte(`{"farmer_id":"WM-4521"}`)})
	if err != nil || len(output.Content) != 1 {
		t.Fatalf("got %v, %v", output, err)
	}
	var got map[string]string
	if err := json.Unmarshal(output.Content[0].(canister.StructuredContent).JSON, &got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"farmer_id": "WM-4521", "name": "Wanjikũ", "asked_by": "advisor"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if nothing, err := tool(t, connection, "search_notes").Invoke(within(t), &invoker.Call{}); err != nil || nothing.Content != nil {
		t.Errorf("None became %v, %v", nothing, err)
	}
	for id, want := range map[string]*invoker.Failure{
		"4521":    {Code: invoker.InvalidArguments, Message: "farmer_id must begin with WM-"},
		"offline": {Code: invoker.Unavailable, Message: "MongoDB cannot be reached", Retryable: true},
		"crash":   {Code: invoker.ExecutionFailed, Message: "The tool failed: Exception calling application: no such table"},
	} {
		failure := failed(t, farmer, &invoker.Call{Arguments: []byte(`{"farmer_id":"` + id + `"}`)})
		if failure.Code != want.Code || failure.Message != want.Message || failure.Retryable != want.Retryable {
			t.Errorf("%s: %+v", id, failure)
		}
	}
}

// A client in Python lists and calls what we serve.
func TestPythonClient(t *testing.T) {
	p := needPython(t)
	fails := ensembletest.Fails("down", invoker.Failf(invoker.Unavailable, "The database is down."))
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{echoTool(t), fails}}))
	cmd := p.command("testdata/client.py", address, "echo", `{"text":"žluťoučký"}`, "echo", `{"text":1}`, "down", `{}`, "absent", `{}`)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var said struct {
		Tools map[string]string
		Calls []struct {
			Result        any
			Code, Message string
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"echo": "object", "down": "object"}; !reflect.DeepEqual(said.Tools, want) {
		t.Errorf("it lists %v", said.Tools)
	}
	if len(said.Calls) != 4 || said.Calls[0].Result != "žluťoučký" {
		t.Fatalf("it was told %+v", said.Calls)
	}
	for i, want := range []string{"ERROR_CODE_INVALID_ARGUMENTS", "ERROR_CODE_SERVICE_UNAVAILABLE", "ERROR_CODE_TOOL_NOT_FOUND"} {
		if got := said.Calls[i+1]; got.Code != want || got.Message == "" {
			t.Errorf("call %d: %+v, want %s", i+1, got, want)
		}
	}
}
