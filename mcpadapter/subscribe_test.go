// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestCutStream: after the stream of changes was cut, changes are reported again, and
// missed ones count as a change; with the newest protocol (E17) and with the standing
// stream of the older ones.
func TestCutStream(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			server := suiteServer(t.Context())
			s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
				&mcp.StreamableHTTPOptions{Stateless: protocol == ""}))
			t.Cleanup(func() {
				s.CloseClientConnections()
				s.Close()
			})
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: protocol}}))
			changed(t, c, server, "first")
			s.CloseClientConnections()
			mcptest.Await(t, "what was missed", c.Changed())
			changed(t, c, server, "second")
		})
	}
}

// changed adds a tool until the connection hears of it: when it listens is not
// for us to see.
func changed(t *testing.T, c ensemble.Connection, server *mcp.Server, name string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(mcptest.Patience)
	for {
		tool := suiteTool(name)
		addTool(t.Context(), server, tool)
		select {
		case <-c.Changed():
			return
		case <-c.Lost():
			t.Fatalf("the connection was lost: %v", c.Err())
		case <-limit:
			t.Fatalf("no change within %s", mcptest.Patience)
		case <-tick.C:
		}
	}
}

// TestManyChanges: changes that come together are passed on together.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := suiteServer(t.Context())
		c := mcptest.Open(t, mcpadapter.InMemory(server, &mcpadapter.ClientOptions{Protocol: "2025-11-25"}))
		for range 50 {
			addTool(t.Context(), server, suiteTool("again"))
		}
		<-c.Changed()
		time.Sleep(time.Minute)
		select {
		case <-c.Changed():
			t.Error("two signals for one burst")
		default:
		}
	})
}

// TestServerKilled: the end of a server that kept a session is noticed without a call
// (E25); a server that is only busy is not taken for one that ended.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			t.Parallel()
			gets := make(chan struct{}, 64)
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method != "GET" {
					return false
				}
				if gets <- struct{}{}; len(gets) > 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
				return true
			})
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
			if killed {
				s.CloseClientConnections()
				s.Listener.Close()
				mcptest.Await(t, "Lost", c.Lost())
				if c.Err() == nil || !strings.Contains(c.Err().Error(), "is closing") {
					t.Errorf("Err: %v", c.Err())
				}
				return
			}
			for limit := time.Now().Add(mcptest.Patience); len(gets) < 5; {
				select {
				case <-c.Lost():
					t.Fatalf("the connection was lost: %v", c.Err())
				case <-time.After(10 * time.Millisecond):
				}
				if time.Now().After(limit) {
					t.Fatal("the stream was not tried again")
				}
			}
		})
	}
}
