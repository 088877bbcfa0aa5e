// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/spf13/cobra"
)

// shelf is the conversation store, for the commands that work on it.
type shelf struct {
	*program
	store     history.Store
	retention history.Retention
	clean     func(string) string // redacts the secrets of the configuration
}

func (p *program) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Look after the conversations that are kept",
		Long: "History lists, shows and changes the conversations that are kept: where --history\n" +
			"FILE or [history] of the configuration says, and otherwise in the user's own store.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.historyListCommand(), p.historySearchCommand(), p.historyShowCommand(), p.historyForkCommand(),
		p.historyRenameCommand(), p.historyTagCommand(), p.historyDeleteCommand(),
		p.historyExportCommand(), p.historyImportCommand(), p.historyPruneCommand(),
	)
	return cmd
}

// onShelf adapts run to a command that works on the store.
func (p *program) onShelf(run func(s *shelf, ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return p.withShelf(false, run)
}

// withShelf is like onShelf, and creates a missing store if makes is set.
func (p *program) withShelf(makes bool, run func(s *shelf, ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return does(func(ctx context.Context, args []string) (err error) {
		s, err := p.openShelf(ctx, makes)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.store.Close()) }()
		return run(s, ctx, args)
	})
}

// openShelf opens the store. It creates a missing store only if makes is set. A
// configuration is not required.
func (p *program) openShelf(ctx context.Context, makes bool) (*shelf, error) {
	cfg := &config.Config{}
	if p.configFile != defaultConfig || !isAbsent(p.configFile) {
		var err error
		if cfg, err = p.load(); err != nil {
			return nil, err
		}
	}
	p.keepIn(cfg)
	if err := p.findShelf(ctx, cfg, makes); err != nil {
		return nil, err
	}
	s := &shelf{program: p, retention: cfg.History.Retention(), clean: cfg.Redact()}
	p.screen.Redact(s.clean)
	if path := cfg.History.Path; !makes && cfg.History.Store.HasPath() && isAbsent(path.Reveal()) {
		p.screen.Note("%s", p.screen.Notes.Faint("There is no "+p.place(cfg)+" yet."))
		s.store = history.NewMemory()
		return s, nil
	}
	store, err := cfg.OpenHistory(ctx)
	if err != nil {
		return nil, p.unopened(err)
	}
	s.store = titled{store}
	return s, nil
}

// findShelf sets the location of the store in the configuration.
func (p *program) findShelf(ctx context.Context, cfg *config.Config, makes bool) error {
	switch {
	case cfg.History != nil || makes:
		return p.keepByDefault(ctx, cfg, keepSurely)
	default:
		path, err := ownStore()
		if err != nil {
			return exit.Usagef("there is no place for conversations: %w; name one with --history FILE", err)
		}
		cfg.History, p.own = &config.History{Path: config.Plain(path)}, true
		return nil
	}
}

func (p *program) historyForkCommand() *cobra.Command {
	var at int
	var id string
	cmd := p.withHistory(&cobra.Command{
		Use:   "fork ID",
		Short: "Begin a conversation with the canisters of another one",
		Long: "Fork makes a conversation that begins as ID does, up to the canister whose number\n" +
			"--at gives, and prints its identity. The numbers are those of: consort history show",
		Args: cobra.ExactArgs(1),
	})
	cmd.RunE = p.onShelf(func(s *shelf, ctx context.Context, args []string) error {
		return s.fork(ctx, args[0], at, !cmd.Flags().Changed("at"), id)
	})
	cmd.Flags().IntVar(&at, "at", 0, "up to the canister `N`, itself included (default: all)")
	cmd.Flags().StringVar(&id, "id", "", "the identity `NEW` of the new conversation (default: a random one)")
	return cmd
}

func (s *shelf) fork(ctx context.Context, from string, at int, whole bool, to string) error {
	info, err := known(ctx, s.store, from)
	if err != nil {
		return err
	}
	if whole {
		at = info.Length
	}
	if at < 1 || at > info.Length {
		return exit.Usagef("--at %d: the conversation %s has the canisters 1 to %d", at, word(from), info.Length)
	}
	if to == "" {
		to = newID()
	}
	if err := history.CheckID(to); err != nil {
		return exit.Usagef("--id: %w", err)
	}
	if err := s.store.Fork(ctx, from, at, to); err != nil {
		return taken(err, to)
	}
	s.screen.PrintSafe(to + "\n")
	return s.screen.Err()
}

// taken adds advice to an error that says that a conversation with this ID exists.
func taken(err error, id string) error {
	if errors.Is(err, history.ErrExists) {
		return exit.Usagef("there is a conversation %s already; name another identity with --id: %w", word(id), err)
	}
	return err
}

func (p *program) historyRenameCommand() *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "rename ID TITLE",
		Short: "Give a conversation a title",
		Args:  cobra.MinimumNArgs(2),
		RunE: p.onShelf(func(s *shelf, ctx context.Context, args []string) error {
			title := strings.Join(args[1:], " ")
			return s.describe(ctx, args[0], history.Change{Title: &title})
		}),
	})
}

func (p *program) historyTagCommand() *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "tag ID [TAG]...",
		Short: "Give a conversation these tags, in place of those that it has",
		Args:  cobra.MinimumNArgs(1),
		RunE: p.onShelf(func(s *shelf, ctx context.Context, args []string) error {
			tags := args[1:]
			return s.describe(ctx, args[0], history.Change{Tags: &tags})
		}),
	})
}

func (s *shelf) describe(ctx context.Context, id string, change history.Change) error {
	if _, err := known(ctx, s.store, id); err != nil {
		return err
	}
	if _, err := change.Apply(history.Info{}); err != nil {
		return exit.Usagef("%w", err)
	}
	return s.store.Describe(ctx, id, change)
}

func (p *program) historyDeleteCommand() *cobra.Command {
	return p.withHistory(&cobra.Command{
		Use:   "delete ID",
		Short: "Delete a conversation, for good",
		Args:  cobra.ExactArgs(1),
		RunE: p.onShelf(func(s *shelf, ctx context.Context, args []string) error {
			_, err := known(ctx, s.store, args[0])
			_, damaged := errors.AsType[*history.CorruptError](err)
			switch {
			case err == nil, damaged:
				return s.store.Delete(ctx, args[0], history.AnyLength)
			case errors.Is(err, history.ErrNotFound): // an earlier delete may have left spilled results
				return errors.Join(err, s.store.Delete(ctx, args[0], history.AnyLength))
			}
			return err
		}),
	})
}
