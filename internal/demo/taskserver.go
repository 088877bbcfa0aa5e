// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// TaskServer is the MCP server that the demonstration starts in a process of its own,
// over stdio or, with a token, over HTTP.
type TaskServer struct {
	File string        // of the task book
	User int64         // whose tasks it serves
	Pace time.Duration // how long a tool takes
	HTTP bool          // over streamable HTTP on a free port, and not over stdio
}

// TokenVar is the environment variable with the bearer token of a server over HTTP.
const TokenVar = "CONSORT_DEMO_TOKEN"

// Serve serves the task book of one user until stdin ends, so that the server does not
// outlive the program that started it.
func (s *TaskServer) Serve(ctx context.Context, stdin io.ReadCloser, stdout io.WriteCloser) (err error) {
	book, err := taskbook.Open(ctx, s.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	tools := taskbook.Tools(book)
	for i, tool := range tools {
		tools[i] = slow{tool, s.Pace}
	}
	user := []invoker.Value{taskbook.User.Value(s.User)}
	options := &server.Options{Name: "tasks", Title: "A task book", Version: "1.0.0", Tools: tools}
	if !s.HTTP {
		options.Trusted = user
		srv := server.New(nil, options)
		err := srv.Serve(ctx, stdin, stdout)
		if ctx.Err() != nil {
			err = nil
		}
		return errors.Join(err, srv.Close(context.WithoutCancel(ctx)))
	}
	token := os.Getenv(TokenVar)
	if token == "" {
		return exit.Usagef("%s is not set", TokenVar)
	}
	options.Tokens = []server.BearerToken{{Token: token, Trusted: user}}
	return listen(ctx, server.New(nil, options), stdin, stdout)
}

// listen serves HTTP on a free port of the loopback interface and prints the URL.
func listen(ctx context.Context, srv *server.Server, stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with standard input, or with the process
		io.Copy(io.Discard, stdin)
		cancel()
	}()
	if _, err := fmt.Fprintf(stdout, "http://%s/mcp\n", listener.Addr()); err != nil {
		cancel() // the parent process has gone
	}
	return srv.ServeListener(ctx, listener)
}

// slow delays a tool so that people can watch it.
type slow struct {
	invoker.Invoker
	pace time.Duration
}

func (s slow) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	timer := time.NewTimer(s.pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.Invoker.Invoke(ctx, call)
	case <-ctx.Done():
		return invoker.Output{}, ctx.Err()
	}
}
