// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker/audit"
)

// review prints the audit trail.
func review(out io.Writer, records string) error {
	file, err := os.Open(records)
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Fprintln(out, "The audit trail:")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for record, err := range audit.Read(file) {
		if err != nil {
			return err
		}
		who := cmp.Or(string(record.Identity[taskbook.User.Name()]), "nobody")
		fmt.Fprintf(table, "%s\tfor %s\t%s\t%s", record.Asker, who, record.Tool, record.Code)
		if len(record.Forged) > 0 {
			fmt.Fprintf(table, "\tforged %s", strings.Join(record.Forged, ", "))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
