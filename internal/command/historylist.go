// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func historyListCommand(p *program) *cobra.Command {
	var filter history.Filter
	cmd := p.withZone(p.withHistory(p.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List conversations, the most recently changed first",
		Args:  cobra.NoArgs,
		RunE:  onStore(p, func(ctx context.Context, m *histories.Manager, _ []string) error { return m.List(ctx, filter) }),
	}, oneDocument)))
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "text", "", "only those that contain all of these `WORDS`, in their titles or messages")
	flags.StringArrayVar(&filter.Tags, "tag", nil, "only those with the `TAG`; may be repeated")
	flags.BoolVar(&filter.Open, "open", false, "only those that do not end with an answer")
	flags.IntVar(&filter.Limit, "limit", 0, "at most `N` of them (default: all)")
	return cmd
}

func historySearchCommand(p *program) *cobra.Command {
	var s histories.Search
	cmd := p.withZone(p.withHistory(p.withJSON(&cobra.Command{
		Use:   "search WORDS",
		Short: "Find conversations that contain all of the words, and show where",
		Long: "Search lists the conversations that contain all of the words, in their titles or\n" +
			"messages, in calls or in results, with the text around the best places.",
		Example: "  consort history search snow Oslo --hits 1",
		Args:    cobra.MinimumNArgs(1),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			s.Words = args
			return m.Search(ctx, s)
		}),
	}, oneDocument)))
	flags := cmd.Flags()
	flags.IntVar(&s.Limit, "limit", 0, "at most `N` of them (default: all)")
	flags.IntVar(&s.Hits, "hits", 3, "at most `N` places of each; 0 means all")
	return cmd
}

func historyShowCommand(p *program) *cobra.Command {
	var full bool
	cmd := p.withZone(p.withHistory(p.withJSON(&cobra.Command{
		Use:   "show ID",
		Short: "Print a conversation",
		Args:  cobra.ExactArgs(1),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			return m.Show(ctx, args[0], full)
		}),
	}, oneDocument)))
	cmd.Flags().BoolVar(&full, "full", false, "also print intents, waits and answers, and messages without content")
	return cmd
}
