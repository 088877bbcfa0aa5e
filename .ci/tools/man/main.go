// SPDX-License-Identifier: Apache-2.0

// Man writes the manual of consort into a folder: one page for each command.
package main

import (
	"fmt"
	"os"

	"github.com/consort-go/consort/internal/command"
	"github.com/spf13/cobra/doc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	tree := command.Tree()
	tree.DisableAutoGenTag = true // which has the date
	// SOURCE_DATE_EPOCH is the date of the pages.
	if err := doc.GenManTree(tree, &doc.GenManHeader{Section: "1", Source: "Consort", Manual: "Consort"}, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
