// SPDX-License-Identifier: Apache-2.0

// Faultserverd is an MCP server that misbehaves according to a script: package
// faultserver as a program.
package main

import (
	"os"

	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func main() {
	os.Exit(faultserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
