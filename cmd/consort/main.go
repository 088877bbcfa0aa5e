// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
)

func main() {
	p := newProgram(os.Stdin, os.Stdout, os.Stderr)
	os.Exit(p.execute(context.Background(), os.Args[1:]))
}
