// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/consort-go/consort/internal/demoserver"
	"github.com/spf13/cobra"
)

// demoServerCommand is what the demonstration starts: an MCP server in a
// process of its own, over stdio or, with a token, over HTTP.
func (p *program) demoServerCommand() *cobra.Command {
	var pace time.Duration
	var overHTTP bool
	cmd := &cobra.Command{
		Use:       "demo-server {atlas|satchel}",
		Short:     "Serve one of the MCP servers of the demonstration",
		Hidden:    true,
		ValidArgs: demoserver.Names(),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: doesUntil(func(ctx context.Context, args []string) error {
			signal.Ignore(os.Interrupt) // a terminal sends it to all; who ends first is decided elsewhere
			server := demoserver.New(args[0], pace)
			if overHTTP {
				return demoserver.ServeHTTP(ctx, server, os.Getenv(demoToken), p.stdin, p.screen.stdout)
			}
			return demoserver.ServeStdio(ctx, server, p.stdin, p.screen.stdout)
		}, syscall.SIGTERM),
	}
	cmd.Flags().DurationVar(&pace, "pace", 0, "how long a tool takes")
	cmd.Flags().BoolVar(&overHTTP, "http", false, "serve streamable HTTP on a free port, to clients with the token of "+demoToken)
	return cmd
}

// demoToken is the environment variable with the bearer token.
const demoToken = "CONSORT_DEMO_TOKEN"
