// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The two servers offer one tool of one schema, and both check arguments.
type echoInput struct {
	Text string `json:"text" jsonschema:"what to say back"`
}

const echoName, echoDescription = "echo", "Say it back."

// sdkHandler is the server that the SDK alone makes, with and without sessions.
func sdkHandler() http.Handler {
	srv := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: echoName, Description: echoDescription},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	get := func(*http.Request) *mcp.Server { return srv }
	sessions := mcp.NewStreamableHTTPHandler(get, nil)
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionHeader) == stateless2026 {
			stateless.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}

// consortHandler is the runtime's server with the options it has by default.
func consortHandler() http.Handler {
	echo, err := invoker.New(echoName, echoDescription, func(_ context.Context, in echoInput) (string, error) { return in.Text, nil }, nil)
	if err != nil {
		panic(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("bench", echo))
	if err != nil {
		panic(err)
	}
	srv := server.New(roster, &server.Options{Name: "bench", Version: "1", OwnNames: true})
	return srv.Handler()
}

// serveHTTP serves on a free port, prints it, and ends with its standard input.
func serveHTTP(handler http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("/cpu", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, int64(used().cpu)) })
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("http://" + listener.Addr().String())
	panic(http.Serve(listener, mux))
}

// httpServer is a server in a process of its own.
type httpServer struct{ url string }

func launchHTTP(b *testing.B, which string) *httpServer {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+which)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatalf("the server %s does not start: %v", which, err)
	}
	return &httpServer{url: strings.TrimSpace(line)}
}

// cpu is the processor time that the server has used, as it says itself.
func (s *httpServer) cpu(b *testing.B) time.Duration {
	b.Helper()
	response, err := http.Get(s.url + "/cpu")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(n)
}
