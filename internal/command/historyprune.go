// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/spf13/cobra"
)

// prune holds the options of history prune, which add to the configuration.
type prune struct {
	keep time.Duration
	open bool
	dry  bool
}

func (p *program) historyPruneCommand() *cobra.Command {
	var o prune
	cmd := p.withHistory(p.withJSON(&cobra.Command{
		Use:   "prune",
		Short: "Delete the conversations that need not be kept any more, for good",
		Long: "Prune deletes the conversations that were last changed longer ago than history.keep\n" +
			"of the configuration, or --keep, says, and lists them. Those that do not end with an\n" +
			"answer stay, unless --open says otherwise.",
		Example: "  consort history prune --keep 720h --dry-run",
		Args:    cobra.NoArgs,
		RunE:    p.onShelf(func(s *shelf, ctx context.Context, _ []string) error { return s.prune(ctx, o) }),
	}, "print one JSON document"))
	flags := cmd.Flags()
	flags.DurationVar(&o.keep, "keep", 0, "keep conversations for `DURATION` after they were last changed, where no rule of the configuration says otherwise")
	flags.BoolVar(&o.open, "open", false, "delete those too that do not end with an answer")
	flags.BoolVar(&o.dry, "dry-run", false, "only list what would be deleted")
	return cmd
}

func (s *shelf) prune(ctx context.Context, o prune) error {
	if o.keep < 0 {
		return exit.Usagef("--keep %v: expected a duration longer than 0, such as 720h", o.keep)
	}
	retention := s.retention
	retention.Open = retention.Open || o.open
	if o.keep > 0 {
		retention.Keep = o.keep
	}
	if retention.KeepsAll() {
		return exit.Usagef("all conversations are kept for ever: say how long with --keep DURATION, longer than 0, or with history.keep of the configuration")
	}
	gone := func() iter.Seq2[history.Info, error] {
		if o.dry {
			return history.Expired(ctx, s.store, retention, time.Now())
		}
		return history.Retain(ctx, s.store, retention, time.Now())
	}()
	var failed error
	var list []history.Info
	for info, err := range gone {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		list = append(list, info)
	}
	return errors.Join(failed, ctx.Err(), s.showList(list))
}
