// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func historyCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Manage the stored conversations",
		Long: "History lists, shows and changes stored conversations: those of --history FILE or of\n" +
			"[history] in the configuration, and otherwise those of the user's own store.",
	}
	cmd.AddCommand(
		historyListCommand(p), historySearchCommand(p), historyShowCommand(p), historyForkCommand(p),
		historyRenameCommand(p), historyTagCommand(p), historyDeleteCommand(p),
		historyExportCommand(p), historyImportCommand(p), historyPruneCommand(p),
	)
	return cmd
}

// managerFunc is the work of a command on the store of conversations.
type managerFunc func(ctx context.Context, m *histories.Manager, args []string) error

// onStore adapts run to a command that works on the store.
func onStore(p *program, run managerFunc) func(*cobra.Command, []string) error {
	return withManager(p, false, run)
}

// withManager is like onStore, and creates a missing store if create is set.
func withManager(p *program, create bool, run managerFunc) func(*cobra.Command, []string) error {
	return runE(func(ctx context.Context, args []string) (err error) {
		m, err := openManager(ctx, p, create)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		return run(ctx, m, args)
	})
}

// openManager opens the store. A configuration is not required.
func openManager(ctx context.Context, p *program, create bool) (*histories.Manager, error) {
	cfg, err := p.load()
	if errors.Is(err, configfile.ErrNone) {
		cfg, err = &config.Config{}, nil
	}
	if err != nil {
		return nil, err
	}
	return histories.Open(ctx, cfg, &p.location, histories.Output{Screen: p.screen, JSON: p.json, Stdin: p.stdin, Zone: p.zone}, create)
}

func historyForkCommand(p *program) *cobra.Command {
	var at int
	var id string
	cmd := p.withHistory(&cobra.Command{
		Use:   "fork ID",
		Short: "Copy the beginning of a conversation to a new one",
		Long: "Fork makes a conversation with the first canisters of ID, up to the number that --at\n" +
			"gives, and prints its ID. consort history show prints the numbers.",
		Args: cobra.ExactArgs(1),
	})
	cmd.RunE = onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
		return m.Fork(ctx, args[0], at, !cmd.Flags().Changed("at"), id)
	})
	cmd.Flags().IntVar(&at, "at", 0, "up to and including the canister `N` (default: all)")
	cmd.Flags().StringVar(&id, "id", "", "the ID `NEW` of the new conversation (default: a random one)")
	return cmd
}

func historyRenameCommand(p *program) *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "rename ID TITLE",
		Short: "Give a conversation a title",
		Args:  cobra.MinimumNArgs(2),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			title := strings.Join(args[1:], " ")
			return m.Describe(ctx, args[0], history.Change{Title: &title})
		}),
	})
}

func historyTagCommand(p *program) *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "tag ID [TAG]...",
		Short: "Replace the tags of a conversation",
		Args:  cobra.MinimumNArgs(1),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			tags := args[1:]
			return m.Describe(ctx, args[0], history.Change{Tags: &tags})
		}),
	})
}

func historyDeleteCommand(p *program) *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "delete ID",
		Short: "Delete a conversation permanently",
		Args:  cobra.ExactArgs(1),
		RunE: onStore(p, func(ctx context.Context, m *histories.Manager, args []string) error {
			return m.Delete(ctx, args[0])
		}),
	})
}
