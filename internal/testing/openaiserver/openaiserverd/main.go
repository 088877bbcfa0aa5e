// SPDX-License-Identifier: Apache-2.0

// Command openaiserverd runs an OpenAI-compatible server that answers from a
// script; see package openaiserver.
package main

import (
	"os"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func main() {
	os.Exit(openaiserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
