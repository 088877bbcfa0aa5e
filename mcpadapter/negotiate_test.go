// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// manners are what a server of the older protocols does when it is asked for
// something before initialize.
var manners = map[string]func(id json.RawMessage){
	"silent": func(json.RawMessage) {},
	"exits":  func(json.RawMessage) { fmt.Fprintln(os.Stderr, "expect initialize"); os.Exit(1) },
	"errs": func(id json.RawMessage) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
	},
	// It counts the question as the one try that it has.
	"errs-for-good": func(id json.RawMessage) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"not initialized"}}`+"\n", id)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(1)
	},
}

const (
	mannerVar = "MCPADAPTER_TEST_MANNER"
	startsVar = "MCPADAPTER_TEST_STARTS" // a directory with a file for each start
)

// TestLegacyServer is no test: it is the server of the next one.
func TestLegacyServer(t *testing.T) {
	early := manners[os.Getenv(mannerVar)]
	if early == nil {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	if err := os.WriteFile(filepath.Join(os.Getenv(startsVar), strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
		os.Exit(8)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			early = nil
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`+"\n", m.ID)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read"}]}}`+"\n", m.ID)
		default:
			if early != nil {
				early(m.ID)
			}
		}
	}
	os.Exit(0)
}

// TestFallBack: each is reached, and the second time without asking again.
func TestFallBack(t *testing.T) {
	first := map[string]int{"silent": 2, "exits": 2, "errs": 1, "errs-for-good": 2} // processes
	for manner, starts := range first {
		t.Run(manner, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestLegacyServer$"}, &mcpadapter.StdioOptions{
				ClientOptions: mcpadapter.ClientOptions{ProbeTimeout: 2 * time.Second},
				Environment:   map[string]string{mannerVar: manner, startsVar: dir, "GORACE": "atexit_sleep_ms=0"},
			})
			for _, want := range []int{starts, starts + 1} {
				c := open(t, source)
				if got := c.Peer(); got != (ensemble.Peer{Name: "old", Version: "1", Protocol: "MCP 2025-06-18"}) {
					t.Errorf("Peer is %+v", got)
				}
				tool(t, c, "read")
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) != want {
					t.Errorf("%d processes were started, want %d (%v)", len(entries), want, err)
				}
			}
		})
	}
}

// TestNewest: a server that has the newest protocol is spoken to in it, and
// one that a version is pinned for in that.
func TestNewest(t *testing.T) {
	for protocol, want := range map[string]string{"": "MCP 2026-07-28", "2025-03-26": "MCP 2025-03-26"} {
		c := open(t, mcpadapter.InMemory(suiteServer(t.Context()), &mcpadapter.ClientOptions{Protocol: protocol}))
		if got := c.Peer(); got.Protocol != want || got.Title != "The Suite" || got.Instructions != "Call wait last." {
			t.Errorf("with %q pinned Peer is %+v, want %s", protocol, got, want)
		}
	}
}

func TestStderrInError(t *testing.T) {
	_, err := mcpadapter.Stdio([]string{"sh", "-c", "echo no license >&2; exit 3"}, nil).Open(within(t))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no license") {
		t.Errorf("Open: %v", err)
	}
}

func TestNoSuchCommand(t *testing.T) {
	e := mcpadapter.Command("files", "no-such-command-anywhere")
	if err := e.Connect(within(t)); err == nil || !strings.Contains(err.Error(), "no-such-command-anywhere") {
		t.Errorf("Connect: %v", err)
	}
	if err := e.Close(within(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
}
