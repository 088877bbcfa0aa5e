// SPDX-License-Identifier: Apache-2.0

package faultserver_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

// A server that has the effect of a call and dies before it answers.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server, err := faultserver.StartHTTP(faultserver.Script{
		Dir:   dir,
		Rules: []faultserver.Rule{{Fault: "die", At: "after-effect", Tool: "effect"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	session := ""
	post := func(message string) error { // the client under test
		request, err := http.NewRequest(http.MethodPost, server.URL(), strings.NewReader(message))
		if err != nil {
			return err
		}
		request.Header.Set("Mcp-Session-Id", session)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		session = response.Header.Get("Mcp-Session-Id")
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	fmt.Println("initialize:", post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
	err = post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"effect","arguments":{"key":"k-1"}}}`)
	fmt.Println("the call failed:", err != nil)

	ledger, err := faultserver.ReadLedger(dir)
	fmt.Println("effects:", len(ledger.Effects().With("k-1")), err)
	fmt.Println("running:", server.Running())
	fmt.Println("again:", server.Restart())
	// Output:
	// initialize: <nil>
	// the call failed: true
	// effects: 1 <nil>
	// running: false
	// again: <nil>
}

// A script for a process, as an entry of its environment.
func ExampleScript_Environ() {
	script := faultserver.Script{Rules: []faultserver.Rule{
		{Fault: "leave-child", At: "start"},
		{Fault: "die", At: "between-calls", Nth: 3, Status: 1, Text: "out of memory"},
	}}
	fmt.Println(script.Environ())
	// Output:
	// CONSORT_FAULTSERVER={"rules":[{"fault":"leave-child","at":"start"},{"fault":"die","at":"between-calls","nth":3,"status":1,"text":"out of memory"}]}
}

// The table of all faults, as a person would read it.
func ExampleFaults() {
	for _, info := range faultserver.Faults() {
		if len(info.Stdio) == 0 && len(info.HTTP) == 1 {
			fmt.Println(info.Fault, "strikes over HTTP alone, at", info.HTTP[0])
		}
	}
	// Output:
	// self-signed strikes over HTTP alone, at start
}
