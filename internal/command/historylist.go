// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func historyListCommand(p *program) *cobra.Command {
	var filter history.Filter
	cmd := p.withHistory(p.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List conversations, the most recently changed first",
		Args:  cobra.NoArgs,
		RunE:  onStore(p, func(ctx context.Context, m *histories.Manager, _ []string) error { return m.List(ctx, filter) }),
	}, "print one JSON document"))
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "text", "", "only those that contain all of these `WORDS`, in their titles or messages")
	flags.StringArrayVar(&filter.Tags, "tag", nil, "only those with the `TAG`; may be repeated")
	flags.BoolVar(&filter.Open, "open", false, "only those that do not end with an answer")
	flags.IntVar(&filter.Limit, "limit", 0, "at most `N` of them (default: all)")
	return cmd
}

func historySearchCommand(p *program) *cobra.Command {
	var filter history.Filter
	cmd := p.withHistory(p.withJSON(&cobra.Command{
		Use:   "search WORDS",
		Short: "List the conversations that contain all of the words",
		Args:  cobra.MinimumNArgs(1),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			filter.Text = strings.Join(args, " ")
			return m.List(ctx, filter)
		}),
	}, "print one JSON document"))
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most `N` of them (default: all)")
	return cmd
}

func historyShowCommand(p *program) *cobra.Command {
	return p.withHistory(p.withJSON(&cobra.Command{
		Use:   "show ID",
		Short: "Print a conversation",
		Args:  cobra.ExactArgs(1),
		RunE:  onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error { return m.Show(ctx, args[0]) }),
	}, "print one JSON document"))
}
