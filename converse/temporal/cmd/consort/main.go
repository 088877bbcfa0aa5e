// SPDX-License-Identifier: Apache-2.0

// Consort is the command of the same name with one engine more, so that nobody
// else has to link Temporal:
//
//	consort worker --temporal ADDR                  carries on conversations
//	consort serve --engine temporal --temporal ADDR serves them, and leaves the work to workers
//
// The configuration names the PostgreSQL database that both share. docs/temporal.md
// tells how to get a server, and docs/command.md all the rest.
package main

import (
	"context"
	"os"

	"github.com/consort-go/consort/internal/command"
)

func main() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, command.WithEngine(temporalEngine())))
}
