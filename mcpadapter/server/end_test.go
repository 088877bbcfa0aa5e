// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool does not wait indefinitely for a client that does not return.
func TestUnansweredQuestion(t *testing.T) {
	failed := make(chan error, 1)
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
		failed <- err
		return invoker.Output{Content: canister.Texts("ended")}, err
	})
	v := newVictim(t, func(o *server.Options) {
		o.Tools, o.AnswerTimeout = []invoker.Invoker{ask}, 50*time.Millisecond
	})
	body := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1), `/clientCapabilities":{}`, `/clientCapabilities":{"elicitation":{}}`, 1)
	// On a busy machine, the time can be up before the question is sent.
	if status, _, answer := v.post(t, body, nil); status != 200 || !strings.Contains(answer, "input_required") && !strings.Contains(answer, "has not answered in time") {
		t.Fatalf("status %d, %s", status, answer)
	}
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the question has an answer")
		}
	case <-time.After(mcptest.Patience):
		t.Fatal("the tool still waits")
	}
}

// After Close, no session, stream or call of the server is left, not even calls that wait
// for their clients.
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
		srv := server.New(roster, &server.Options{Tools: []invoker.Invoker{ask}})
		listener := httptest.NewServer(srv.Handler())
		transport := &http.Transport{}
		var clients []*mcp.ClientSession
		for _, protocol := range mcptest.Protocols {
			client := mcp.NewClient(&mcp.Implementation{Name: "c"},
				&mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: listener.URL, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1,
			}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
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
		go func() { served <- srv.Serve(context.Background(), toServer, fromServer) }()
		v := &victim{server: srv, Server: listener}
		v.post(t, strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1), `/clientCapabilities":{}`,
			`/clientCapabilities":{"elicitation":{}}`, 1), nil)
		ctx, cancel := context.WithTimeout(context.Background(), mcptest.Patience)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
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
	for end := time.Now().Add(mcptest.Patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// halfSent sends a message of a session in two parts. rest sends the second one
// and returns the status.
func halfSent(t *testing.T, client *http.Client, session, message string) (rest func() int, status <-chan int) {
	body, writer := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	answered := make(chan int, 1)
	go func() {
		response, err := client.Do(r)
		_ = body.Close() // nothing more is to be read of it
		if err != nil {
			t.Errorf("the request failed: %v", err)
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	if _, err := io.WriteString(writer, message[:len(message)/2]); err != nil {
		t.Fatal(err)
	}
	return func() int {
		_, _ = io.WriteString(writer, message[len(message)/2:])
		_ = writer.Close()
		return <-answered
	}, answered
}

// When the server ends, a message of a session may arrive for 2 s, since a call
// under way may wait for it. Nothing else is waited for.
func TestLastAnswerOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
			return invoker.Output{Content: canister.Texts("answered")}, err
		})
		srv, dial, end := overPipesWith(t, &server.Options{Tools: []invoker.Invoker{ask}})
		defer end()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil }}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		response := send(t, client, "", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
		bodyOf(response)
		session := response.Header.Get("Mcp-Session-Id")
		call := send(t, client, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
		defer call.Body.Close()
		events := bufio.NewReader(call.Body)
		question := regexp.MustCompile(`"id":(\d+)`)
		var id string
		for id == "" {
			line, err := events.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if found := question.FindStringSubmatch(line); found != nil && strings.Contains(line, "elicitation/create") {
				id = found[1]
			}
		}
		const word = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
		answer, _ := halfSent(t, client, session, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{}}}`)
		_, late := halfSent(t, client, session, word)
		_, foreign := halfSent(t, client, "", word)
		synctest.Wait()

		began, closed := time.Now(), make(chan error, 1)
		go func() { closed <- srv.Close(t.Context()) }()
		if status := <-foreign; status != http.StatusServiceUnavailable || time.Since(began) != 0 {
			t.Errorf("a message of no session: status %d after %v", status, time.Since(began))
		}
		time.Sleep(1900 * time.Millisecond)
		if status := answer(); status != http.StatusAccepted {
			t.Errorf("the answer after 1.9 s: status %d", status)
		}
		if text, err := io.ReadAll(events); err != nil || !strings.Contains(string(text), `"answered"`) {
			t.Errorf("the call came to %s, %v", text, err)
		}
		if status := <-late; status != http.StatusServiceUnavailable || time.Since(began) != 2*time.Second {
			t.Errorf("a message that does not arrive: status %d after %v", status, time.Since(began))
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
