// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"time"

	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func historyPruneCommand(p *program) *cobra.Command {
	var o histories.Prune
	cmd := p.withZone(p.withHistory(p.withJSON(&cobra.Command{
		Use:   "prune",
		Short: "Delete expired conversations permanently",
		Long: "Prune deletes and lists the conversations whose last change is longer ago than\n" +
			"history.keep of the configuration, or --keep. Conversations that do not end with an\n" +
			"answer stay, unless --open is given.",
		Example: "  consort history prune --keep 720h --dry-run",
		Args:    cobra.NoArgs,
	}, oneDocument)))
	flags, keep := cmd.Flags(), time.Duration(0)
	cmd.RunE = onStore(p, func(ctx context.Context, m *histories.Manager, _ []string) error {
		if flags.Changed("keep") {
			o.Keep = &keep
		}
		return m.Prune(ctx, o)
	})
	flags.DurationVar(&keep, "keep", 0, "keep conversations for `DURATION` after their last change, unless a rule of the configuration says otherwise")
	flags.BoolVar(&o.Open, "open", false, "also delete those that do not end with an answer")
	flags.BoolVar(&o.Dry, "dry-run", false, "only list what would be deleted")
	return cmd
}
