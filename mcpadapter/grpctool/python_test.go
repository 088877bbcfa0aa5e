// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// needPython finds a Python with the stubs of the original contract.
func needPython(t *testing.T) *realservers.Python {
	t.Helper()
	return realservers.NeedPython(t, "testdata", "mcp/v1/mcp_tool.proto")
}

// The suite of sources, over a server in Python that knows the original
// contract alone.
func TestSourcesInPython(t *testing.T) {
	t.Parallel()
	needPython(t)
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		server := needPython(t).Serve("testdata/server.py", "suite")
		return ensembletest.Harness{
			Source:     grpctool.Source(server.Address, plaintext()),
			Lose:       func() { server.Kill(); server.Start() },
			NoProgress: true,
		}
	})
}

// A server in Python is listed and called, and its errors are failures.
func TestPythonServer(t *testing.T) {
	server := needPython(t).Serve("testdata/server.py", "farm")
	if got := listed(t, server.Address, &grpctool.Options{Plaintext: true, Category: "search"}); !reflect.DeepEqual(got, []string{"search_notes"}) {
		t.Errorf("the category search has %q", got)
	}
	connection := opened(t, grpctool.Source(server.Address, &grpctool.Options{Plaintext: true, Caller: "advisor"}))
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
	cmd := p.Command("testdata/client.py", address, "echo", `{"text":"žluťoučký"}`, "echo", `{"text":1}`, "down", `{}`, "absent", `{}`)
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
