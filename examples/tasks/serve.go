// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// visits are the calls of MCP clients, each with one person's token.
var visits = []struct {
	who   person
	calls []string // names and arguments
}{
	{ada, []string{"list_tasks", `{"completed": true}`, "add_task", `{"title": "Water the plants"}`}},
	{ben, []string{"list_tasks", `{}`, "list_tasks", `{"user_id": 1}`, "delete_task", `{"task_id": 4}`}},
	{person{name: "Somebody", token: "made-up"}, nil},
}

// serve offers the tools of the roster over MCP and plays the visits.
func serve(ctx context.Context, out io.Writer, roster *ensemble.Roster, trail *audit.Trail) (err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := newServer(roster, trail)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- srv.ServeListener(serving, listener) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served, srv.Close(ctx))
	}()
	for _, visit := range visits {
		fmt.Fprintf(out, "An MCP client with %s's token:\n", visit.who.name)
		if err := call(ctx, out, "http://"+listener.Addr().String()+"/mcp", visit.who.token, visit.calls); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

// newServer returns the MCP server, with the tokens that identify its clients.
func newServer(roster *ensemble.Roster, trail *audit.Trail) *server.Server {
	return server.New(roster, &server.Options{
		Name:     "tasks",
		OwnNames: true, // add_task instead of tasks__add_task
		Tokens:   []server.BearerToken{tokenOf(ada), tokenOf(ben)},
		Audit:    trail,
	})
}

// tokenOf returns a person's token with the trusted value that identifies the person.
func tokenOf(who person) server.BearerToken {
	return server.BearerToken{Token: who.token, Trusted: []invoker.Value{taskbook.User.Value(who.id)}}
}

// connect returns a session of the MCP SDK's own client, which is independent of
// mcpadapter's client.
func connect(ctx context.Context, url, token string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "a client", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
}

// call calls tools of the server.
func call(ctx context.Context, out io.Writer, url, token string, calls []string) error {
	session, err := connect(ctx, url, token)
	if err != nil && strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) {
		fmt.Fprintln(out, "  is not let in")
		return nil
	}
	if err != nil {
		return err
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	fmt.Fprintf(out, "  finds %s\n", strings.Join(names, ", "))
	for pair := range slices.Chunk(calls, 2) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: pair[0], Arguments: json.RawMessage(pair[1])})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %s %s\n    %s\n", pair[0], pair[1], textOfResult(result))
	}
	return nil
}

// textOfResult returns the text of a result, as a text-only client shows it.
func textOfResult(result *mcp.CallToolResult) string {
	var texts []string
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	text := strings.ReplaceAll(strings.Join(texts, " "), "\n", "\n    ")
	if result.IsError {
		return "error: " + text
	}
	return text
}

// bearer sends requests with a token.
type bearer string

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(request)
}
