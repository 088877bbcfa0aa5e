// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool does not wait for ever for a client that does not come back.
func TestUnansweredQuestion(t *testing.T) {
	failed := make(chan error, 1)
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
		failed <- err
		return invoker.Output{Content: canister.Texts("ended")}, err
	})
	v := newVictim(t, func(o *mcpadapter.ServerOptions) {
		o.Tools, o.AnswerTimeout = []invoker.Invoker{ask}, 50*time.Millisecond
	})
	body := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1), `/clientCapabilities":{}`, `/clientCapabilities":{"elicitation":{}}`, 1)
	if status, _, answer := v.post(t, body, nil); status != 200 || !strings.Contains(answer, "input_required") {
		t.Fatalf("status %d, %s", status, answer)
	}
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the question has an answer")
		}
	case <-time.After(patience):
		t.Fatal("the tool still waits")
	}
}

// After Close nothing of the server is left: neither of sessions and streams
// nor of calls, also of those that wait for their clients.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
			return invoker.Output{}, err
		})
		roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.Echo()))
		if err != nil {
			t.Fatal(err)
		}
		server := mcpadapter.NewServer(roster, &mcpadapter.ServerOptions{Tools: []invoker.Invoker{ask}})
		listener := httptest.NewServer(server.Handler())
		transport := &http.Transport{}
		var clients []*mcp.ClientSession
		for _, protocol := range protocols {
			client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: listener.URL, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, session)
		}
		toServer, in := io.Pipe()
		out, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- server.Serve(context.Background(), toServer, fromServer) }()
		v := &victim{server: server, Server: listener}
		v.post(t, strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1), `/clientCapabilities":{}`, `/clientCapabilities":{"elicitation":{}}`, 1), nil)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		for _, session := range clients {
			_ = session.Close()
		}
		in.Close()
		out.Close()
		listener.CloseClientConnections()
		listener.Close()
		transport.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		_ = roster.Close(ctx)
	}()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
