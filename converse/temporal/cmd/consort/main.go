// SPDX-License-Identifier: Apache-2.0

// Consort is the command of the same name with the Temporal engine added. It is
// separate so that other programs need not link Temporal's SDK:
//
//	consort worker --temporal ADDR                  runs conversations
//	consort serve --engine temporal --temporal ADDR serves them, and leaves the work to workers
//
// The configuration names the PostgreSQL database that both share. docs/temporal.md
// explains how to get a server, and docs/command.md describes the other commands.
package main

import (
	"context"
	"os"

	"github.com/consort-go/consort/internal/command"
)

func main() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, command.WithEngine(temporalEngine())))
}
