// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/servetoken"
	"github.com/spf13/cobra"
)

func tokenCommand(p *program) *cobra.Command {
	group := &cobra.Command{Use: "token", Short: "Make tokens for the clients of consort serve"}
	group.AddCommand(newTokenCommand(p))
	return group
}

func newTokenCommand(p *program) *cobra.Command {
	expires := ""
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Print a new token, once, and the lines for the configuration",
		Long: "New prints a token for the client NAME of consort serve, and the lines for the\n" +
			"configuration. These have only the hash of the token: whoever reads the file cannot use it.",
		Example: "  consort token new dashboard --expires 90d",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(_ context.Context, args []string) error { return runNewToken(p, args[0], expires) }),
	}
	cmd.Flags().StringVar(&expires, "expires", "", "let the token expire after a number of days, or a `DAY`: 90d or 2027-01-31 (default: never)")
	return p.withJSON(cmd, oneDocument)
}

func runNewToken(p *program, name, expires string) error {
	token, err := servetoken.New(name, expires)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	return printResult(p, token, "the token, which is printed only now:\n\n"+token.Token+"\n\nthe lines for the configuration of consort serve:\n\n"+token.TOML())
}
