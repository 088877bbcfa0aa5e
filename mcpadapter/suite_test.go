// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSources runs the suite of sources over every transport, with the newest
// protocol where the server has it and with an older one.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"", "2025-11-25", "2024-11-05"} {
		name := protocol
		if name == "" {
			name = "newest"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := mcpadapter.ClientOptions{Protocol: protocol}
			for _, transport := range transports {
				t.Run(transport.name, func(t *testing.T) {
					if transport.fits != nil && !transport.fits(protocol) {
						t.Skip("this protocol is not spoken over this transport")
					}
					ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness { return transport.harness(t, client) })
				})
			}
		})
	}
}

var transports = []struct {
	name    string
	harness func(*testing.T, mcpadapter.ClientOptions) ensembletest.Harness
	fits    func(protocol string) bool
}{
	{"memory", memoryHarness, nil},
	{"stdio", stdioHarness, nil},
	{"http-stateful", statefulHarness, nil},
	{"http-stateless", statelessHarness, func(protocol string) bool { return protocol == "" }},
	{"sse", sseHarness, func(protocol string) bool { return protocol != "" }},
}

func memoryHarness(t *testing.T, client mcpadapter.ClientOptions) ensembletest.Harness {
	server := suiteServer(t.Context())
	return ensembletest.Harness{
		Source: mcpadapter.InMemory(server, &client), // a server in this program cannot be killed
		Change: func() { changeTools(server) },

		Library:       true,
		Update:        func() { updateGreeting(server) },
		ChangeLibrary: func() { addLate(server) },
	}
}

func stdioHarness(t *testing.T, client mcpadapter.ClientOptions) ensembletest.Harness {
	argv, env, signalAll := serverProcess(t)
	return ensembletest.Harness{
		Source: mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{ClientOptions: client, Environment: env}),
		Lose:   func() { signalAll(os.Kill) },
		Change: func() { signalAll(syscall.SIGHUP) },

		Library:       true,
		Update:        func() { signalAll(syscall.SIGALRM) },
		ChangeLibrary: func() { signalAll(syscall.SIGQUIT) },
	}
}

func statefulHarness(t *testing.T, client mcpadapter.ClientOptions) ensembletest.Harness {
	server := suiteServer(t.Context())
	get := func(*http.Request) *mcp.Server { return server }
	return httpHarness(t, server, func() http.Handler { return mcp.NewStreamableHTTPHandler(get, nil) }, client)
}

func statelessHarness(t *testing.T, client mcpadapter.ClientOptions) ensembletest.Harness {
	server := suiteServer(t.Context())
	get := func(*http.Request) *mcp.Server { return server }
	h := httpHarness(t, server, func() http.Handler {
		return mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	}, client)
	h.Lose = nil // without sessions there is nothing to lose
	return h
}

// httpHarness loses connections by forgetting all sessions, as a server does
// that is started anew.
func httpHarness(t *testing.T, server *mcp.Server, handler func() http.Handler, client mcpadapter.ClientOptions) ensembletest.Harness {
	current := newSwitch(handler())
	s := httptest.NewServer(current)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return ensembletest.Harness{
		Source: mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: client}),
		Lose: func() {
			current.set(handler())
			s.CloseClientConnections()
		},
		Change: func() { changeTools(server) },

		Library:       true,
		Update:        func() { updateGreeting(server) },
		ChangeLibrary: func() { addLate(server) },
	}
}

func sseHarness(t *testing.T, client mcpadapter.ClientOptions) ensembletest.Harness {
	server := suiteServer(t.Context())
	s := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return ensembletest.Harness{
		Source: mcpadapter.SSE(s.URL, &mcpadapter.HTTPOptions{ClientOptions: client}),
		Lose:   s.CloseClientConnections,
		Change: func() { changeTools(server) },

		Library:       true,
		Update:        func() { updateGreeting(server) },
		ChangeLibrary: func() { addLate(server) },
	}
}
