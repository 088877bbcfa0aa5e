// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/consort-go/consort/internal/command"
)

func main() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
