// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// manners are the reactions of servers of the older protocols to a request before
// initialize.
var manners = map[string]func(id json.RawMessage){
	"silent":   func(json.RawMessage) {},
	"late":     func(json.RawMessage) {},
	"late-new": func(json.RawMessage) {},
	"slow-new": func(id json.RawMessage) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}`+"\n", id)
	},
	"installs": func(json.RawMessage) {},
	"exits":    func(json.RawMessage) { fmt.Fprintln(os.Stderr, "expect initialize"); os.Exit(1) },
	"errs": func(id json.RawMessage) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
	},
	// It counts the question as the one try that it has, and ends at the next line.
	"errs-for-good": func(id json.RawMessage) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"not initialized"}}`+"\n", id)
		tried = true
	},
}

var tried bool // a server of TestLegacyServer ends at the next line

const (
	mannerVar = "MCPADAPTER_TEST_MANNER"
	startsVar = "MCPADAPTER_TEST_STARTS" // a directory with a file for each start
)

// TestLegacyServer is not a test: it is the server of the next one.
func TestLegacyServer(t *testing.T) {
	early := manners[os.Getenv(mannerVar)]
	if early == nil {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	if err := os.WriteFile(filepath.Join(os.Getenv(startsVar), strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
		os.Exit(8)
	}
	switch os.Getenv(mannerVar) {
	case "late":
		time.Sleep(time.Second)
	case "late-new":
		if entries, _ := os.ReadDir(os.Getenv(startsVar)); len(entries) == 1 {
			time.Sleep(9 * time.Second)
		}
		serveBoth()
	case "slow-new":
		time.Sleep(3 * time.Second)
	case "installs":
		if _, err := os.Stat(filepath.Join(os.Getenv(startsVar), installed)); err != nil {
			time.Sleep(time.Hour) // it is ended before
		}
		serveBoth()
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if tried {
			os.Exit(1)
		}
		var m mcptest.Message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			early = nil
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"old","version":"1"}}}`+"\n", m.ID)
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

// installed is the file in the directory of startsVar without which a server that
// installs itself does not start to read.
const installed = "installed"

// serveBoth serves both generations of the protocol, and ends the process.
func serveBoth() {
	server := mcp.NewServer(&mcp.Implementation{Name: "new", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "read"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
	os.Exit(0)
}

// A server that needs more than the time to connect at its first start is asked for
// an older protocol at the second one, in case the first message was too much for it,
// and for the newest at the third.
func TestSlowFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestLegacyServer$"}, &mcpadapter.StdioOptions{
		Environment: map[string]string{mannerVar: "installs", startsVar: dir, "GORACE": "atexit_sleep_ms=0"},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := source.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the first start: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, installed), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MCP 2025-11-25", "MCP 2026-07-28", "MCP 2026-07-28"} {
		if got := mcptest.Open(t, source).Peer().Protocol; got != want {
			t.Errorf("the protocol is %s, want %s", got, want)
		}
	}
}

// TestFallBack: each is reached, and the second time without asking again.
func TestFallBack(t *testing.T) {
	t.Parallel()
	first := map[string]int{"silent": 1, "late": 1, "late-new": 1, "exits": 2, "errs": 1, "errs-for-good": 2} // processes
	for manner, starts := range first {
		t.Run(manner, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			probe := 300 * time.Millisecond
			if manner == "late-new" { // which has two seconds to answer once it reads
				probe = 8 * time.Second
			}
			source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestLegacyServer$"}, &mcpadapter.StdioOptions{
				ClientOptions: mcpadapter.ClientOptions{ProbeTimeout: probe},
				Environment:   map[string]string{mannerVar: manner, startsVar: dir, "GORACE": "atexit_sleep_ms=0"},
			})
			for _, want := range []int{starts, starts + 1} {
				c := mcptest.Open(t, source)
				peer := ensemble.Peer{Name: "old", Version: "1", Protocol: "MCP 2025-06-18"}
				if manner == "late-new" {
					peer = ensemble.Peer{Name: "new", Version: "1", Protocol: "MCP 2026-07-28"}
				}
				if got := c.Peer(); !reflect.DeepEqual(got, peer) {
					t.Errorf("Peer is %+v, want %+v", got, peer)
				}
				read := mcptest.Tool(t, c, "read")
				if manner == "late-new" { // which answers calls
					if _, err := read.Invoke(mcptest.Within(t), &invoker.Call{Arguments: json.RawMessage("{}")}); err != nil {
						t.Errorf("the call: %v", err)
					}
				}
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) != want {
					t.Errorf("%d processes were started, want %d (%v)", len(entries), want, err)
				}
			}
		})
	}
}

// TestDiscoverAnswers: whatever a server over HTTP makes of the first question,
// one that has an older protocol is reached with it, and the next time at once.
func TestDiscoverAnswers(t *testing.T) {
	body := func(status int, kind, text string) func(http.ResponseWriter, mcptest.Message) {
		return func(w http.ResponseWriter, m mcptest.Message) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, strings.ReplaceAll(text, "ID", string(m.ID)))
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, mcptest.Message){
		"400":               body(400, "text/plain", "Bad Request: Server not initialized"),
		"400 with an error": body(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}`),
		"400 with another ID": body(400, "application/json",
			`{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no session"}}`),
		"200 with another ID": body(200, "application/json",
			`{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no session"}}`),
		"404":          body(404, "text/plain", "no"),
		"405":          body(405, "text/plain", "no"),
		"500":          body(500, "text/plain", "no"),
		"503":          body(503, "text/plain", "no"),
		"web page":     body(200, "text/html", "<html>"),
		"no JSON":      body(200, "application/json", "{"),
		"no result":    body(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{}}`),
		"odd result":   body(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":[7]}`),
		"odd versions": body(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":["1999-01-01"]}}`),
		"broken event": body(200, "text/event-stream", "data: x\n\n"),
		"cut":          func(http.ResponseWriter, mcptest.Message) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method == "server/discover" {
					answer(w, m)
				}
				return m.Method == "server/discover"
			})
			// The time of the probe is longer than the test may take: an answer ends it.
			source := mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{ProbeTimeout: mcptest.Patience}})
			for range 2 {
				c := mcptest.Open(t, source)
				if got := c.Peer().Protocol; got != "MCP 2025-11-25" {
					t.Errorf("the protocol is %s", got)
				}
				mcptest.Tool(t, c, "read")
			}
			if n := len(s.Received("server/discover")); n != 1 {
				t.Errorf("it was asked for the newest protocol %d times", n)
			}
		})
	}
}

// A process that has not read the first question yet is not asked the second one: it speaks the newest
// protocol when it starts late.
func TestSlowToRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what a process has read is known on Linux only")
	}
	t.Parallel()
	source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestLegacyServer$"}, &mcpadapter.StdioOptions{
		ClientOptions: mcpadapter.ClientOptions{ProbeTimeout: 2 * time.Second},
		Environment:   map[string]string{mannerVar: "slow-new", startsVar: t.TempDir(), "GORACE": "atexit_sleep_ms=0"},
	})
	if got := mcptest.Open(t, source).Peer().Protocol; got != "MCP 2026-07-28" {
		t.Errorf("the protocol is %s", got)
	}
}

// TestSlowNewest: a server over HTTP that supports only the newest protocol and answers
// slowly at first is asked again.
func TestSlowNewest(t *testing.T) {
	var asked atomic.Int32
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "server/discover":
			if asked.Add(1) == 1 {
				<-r.Context().Done()
				return true
			}
			mcptest.Reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			return true
		case "initialize":
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		return false
	})
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{ProbeTimeout: 500 * time.Millisecond}}))
	if got := c.Peer().Protocol; got != "MCP 2026-07-28" {
		t.Errorf("the protocol is %s", got)
	}
}

// TestUpgraded: a server that no longer has the old protocol is found again,
// however it refuses it.
func TestUpgraded(t *testing.T) {
	for _, status := range []int{400, 404, 405, 500} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			var current atomic.Pointer[http.Handler]
			set := func(h http.Handler) { current.Store(&h) }
			server := suiteServer(t.Context())
			sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
			old := mcptest.NewScripted(t, nil)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) }))
			t.Cleanup(func() {
				s.CloseClientConnections()
				s.Close()
			})
			source := mcpadapter.HTTP(s.URL, nil)
			set(old)
			_ = mcptest.Open(t, source).Close(mcptest.Within(t))
			set(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Protocol-Version") < "2026-07-28" {
					w.WriteHeader(status)
					return
				}
				sdk.ServeHTTP(w, r)
			}))
			if got := mcptest.Open(t, source).Peer().Protocol; got != "MCP 2026-07-28" {
				t.Errorf("the protocol is %s", got)
			}
		})
	}
}

// TestNewest: a server that has the newest protocol is spoken to in it, and
// one that a version is pinned for in that.
func TestNewest(t *testing.T) {
	for protocol, want := range map[string]string{"": "MCP 2026-07-28", "2025-03-26": "MCP 2025-03-26"} {
		c := mcptest.Open(t, mcpadapter.InMemory(suiteServer(t.Context()), &mcpadapter.ClientOptions{Protocol: protocol}))
		if got := c.Peer(); got.Protocol != want || got.Title != "The Suite" || got.Instructions != "Call wait last." {
			t.Errorf("with %q pinned Peer is %+v, want %s", protocol, got, want)
		}
	}
}

func TestStderrInError(t *testing.T) {
	_, err := mcpadapter.Stdio([]string{"sh", "-c", "echo no license >&2; exit 3"}, nil).Open(mcptest.Within(t))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no license") {
		t.Errorf("Open: %v", err)
	}
}

func TestNoSuchCommand(t *testing.T) {
	e := mcpadapter.Command("files", "no-such-command-anywhere")
	if err := e.Connect(mcptest.Within(t)); err == nil || !strings.Contains(err.Error(), "no-such-command-anywhere") {
		t.Errorf("Connect: %v", err)
	}
	if err := e.Close(mcptest.Within(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
}
