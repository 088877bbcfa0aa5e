// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func historyExportCommand(p *program) *cobra.Command {
	var e histories.Export
	cmd := p.withZone(p.withHistory(&cobra.Command{
		Use:     "export [ID]...",
		Short:   "Export conversations, for another store or for reading",
		Example: "  consort history export 20261121-k3f9ab2c --format html -o talk.html\n  consort history export --all -o talks.jsonl",
		RunE:    onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error { return m.Export(ctx, e, args) }),
	}))
	flags := cmd.Flags()
	flags.BoolVar(&e.All, "all", false, "export all conversations")
	flags.StringArrayVar(&e.Tags, "tag", nil, "write the conversations with the `TAG`; may be repeated")
	flags.StringVar(&e.Format, "format", histories.Lines, "the `FORMAT`: jsonl, for history import, or markdown or html, for reading")
	flags.BoolVar(&e.Full, "full", false, "in markdown and html: also intents, waits and answers, and messages without content")
	flags.StringVarP(&e.To, "output", "o", "", "write to `FILE`, which may be a link or a device (default: standard output)")
	flags.BoolVar(&e.Force, "force", false, "replace the file if it exists")
	return cmd
}

func historyImportCommand(p *program) *cobra.Command {
	var id string
	cmd := p.withHistory(&cobra.Command{
		Use:   "import FILE",
		Short: "Import conversations that were exported as jsonl",
		Long: "Import adds conversations with their titles, tags and owners, and prints their IDs.\n" +
			"FILE is the output of history export; - is standard input. Conversations that exist\n" +
			"already stay as they are.",
		Args: cobra.ExactArgs(1),
		RunE: withManager(p, true, func(ctx context.Context, m *histories.Manager, args []string) error {
			return m.Import(ctx, args[0], id)
		}),
	})
	cmd.Flags().StringVar(&id, "id", "", "the ID `NEW` for a file with one conversation (default: the ID in the file)")
	return cmd
}
