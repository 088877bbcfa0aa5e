// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/internal/demoserver"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/spf13/cobra"
)

// demoServer is the MCP server that the demonstration starts in its own process, over
// stdio or, with a token, over HTTP.
type demoServer struct {
	*program
	pace     time.Duration
	file     string // of the task book
	user     int64
	overHTTP bool
}

func (p *program) demoServerCommand() *cobra.Command {
	d := &demoServer{program: p}
	cmd := &cobra.Command{
		Use:       "demo-server {tasks|atlas|satchel}",
		Short:     "Serve the tasks of one user of the demonstration, or an MCP server to try things with",
		Hidden:    true,
		ValidArgs: append(demoserver.Names(), "tasks"),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: doesUntil(func(ctx context.Context, args []string) error {
			signal.Ignore(os.Interrupt) // a terminal sends it to every process; the parent decides when this one ends
			if args[0] == "tasks" {
				return d.serveTasks(ctx)
			}
			return demoserver.ServeStdio(ctx, demoserver.New(args[0], d.pace), p.stdin, p.screen.Stdout)
		}, syscall.SIGTERM),
	}
	cmd.Flags().DurationVar(&d.pace, "pace", 0, "how long a tool takes")
	cmd.Flags().StringVar(&d.file, "file", "", "the database of tasks")
	cmd.Flags().Int64Var(&d.user, "user", 0, "whose tasks they are")
	cmd.Flags().BoolVar(&d.overHTTP, "http", false, "serve tasks over streamable HTTP on a free port, to the client with the token of "+demoToken)
	return cmd
}

// demoToken is the environment variable with the bearer token.
const demoToken = "CONSORT_DEMO_TOKEN"

// serveTasks serves the task book of one user until standard input ends, so that the
// server does not outlive the program that started it.
func (d *demoServer) serveTasks(ctx context.Context) (err error) {
	book, err := taskbook.Open(ctx, d.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	tools := taskbook.Tools(book)
	for i, tool := range tools {
		tools[i] = slow{tool, d.pace}
	}
	user := []invoker.Value{taskbook.User.Is(d.user)}
	options := &mcpadapter.ServerOptions{Name: "tasks", Title: "A task book", Version: "1.0.0", Tools: tools}
	if !d.overHTTP {
		options.Trusted = user
		server := mcpadapter.NewServer(nil, options)
		err := server.Serve(ctx, d.stdin, d.screen.Stdout)
		if ctx.Err() != nil {
			err = nil
		}
		return errors.Join(err, server.Close(context.WithoutCancel(ctx)))
	}
	token := os.Getenv(demoToken)
	if token == "" {
		return exit.Usagef("%s is not set", demoToken)
	}
	options.Tokens = []mcpadapter.BearerToken{{Token: token, Trusted: user}}
	return d.listen(ctx, mcpadapter.NewServer(nil, options))
}

// listen serves HTTP on a free port of the loopback interface and prints the URL.
func (d *demoServer) listen(ctx context.Context, server *mcpadapter.Server) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with standard input, or with the process
		io.Copy(io.Discard, d.stdin)
		cancel()
	}()
	if _, err := fmt.Fprintf(d.screen.Stdout, "http://%s/mcp\n", listener.Addr()); err != nil {
		cancel() // the parent process has gone
	}
	return server.ServeListener(ctx, listener)
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
