// SPDX-License-Identifier: Apache-2.0

// Command testserver runs one of the MCP servers of the command's tests over standard
// input and output. It is small and built without the race detector, so that it starts
// fast.
//
//	testserver {atlas|satchel} [--pace DURATION]
//	testserver library FOLDER
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/consort-go/consort/internal/demoserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	signal.Ignore(os.Interrupt) // a terminal sends it to every process; the parent decides when this one ends
	if err := demoserver.ServeStdio(context.Background(), newServer(os.Args[1], os.Args[2:]), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newServer returns the server with the given name.
func newServer(name string, args []string) *mcp.Server {
	if name == "library" {
		return library(args[0])
	}
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	pace := flags.Duration("pace", 0, "how long a tool takes")
	_ = flags.Parse(args) // it exits after an error
	return demoserver.New(name, *pace)
}
