// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/command/completions"
	"github.com/consort-go/consort/internal/display"
	"github.com/spf13/cobra"
)

// completionTime bounds how long a shell waits for words that come from servers or from a
// store.
const completionTime = 5 * time.Second

// addCompletions tells the shell which words fit the arguments and flags of the commands
// below root. If words are not available, for example because the configuration is invalid,
// the shell completes nothing.
func addCompletions(p *program, root *cobra.Command) {
	prompts, resources := p.ofServers(completions.Prompts), p.ofServers(completions.Resources)
	arguments := map[string]cobra.CompletionFunc{
		"approve": first(p.conversationIDs), "resume": first(p.conversationIDs),
		"history delete": first(p.conversationIDs), "history fork": first(p.conversationIDs), "history rename": first(p.conversationIDs),
		"history show": first(p.conversationIDs), "history tag": first(p.conversationIDs), "history export": words(p.conversationIDs),
		"call": p.completeTool, "pins accept": p.completeTool, "prompts": first(prompts),
		"approvals revoke": first(alwaysAllowed), "login": first(p.loginNames), "logout": first(p.loginNames),
	}
	values := map[string]cobra.CompletionFunc{
		"log-level":    cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
		"log-format":   cobra.FixedCompletions([]string{"console", "json"}, cobra.ShellCompDirectiveNoFileComp),
		"format":       cobra.FixedCompletions([]string{"jsonl", "markdown", "html"}, cobra.ShellCompDirectiveNoFileComp),
		"api":          cobra.FixedCompletions([]string{"chat", "responses", "messages"}, cobra.ShellCompDirectiveNoFileComp),
		"conversation": words(p.conversationIDs),
		"prompt":       words(prompts),
		"document":     words(resources),
		"read":         words(resources),
		"model":        words(p.modelNames),
		"set":          p.completeSetting,
		"approve":      words(p.approvalRules),
		"tag":          words(p.tags),
		"import":       cobra.FixedCompletions([]string{"all", "none"}, cobra.ShellCompDirectiveNoFileComp),
		"config":       cobra.FixedCompletions([]string{"toml", "json"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	for _, name := range []string{"base-url", "trust", "argument", "time-zone", "text", "id", "keep"} { // never a file
		values[name] = cobra.NoFileCompletions
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		switch complete := arguments[path]; {
		case complete != nil:
			cmd.ValidArgsFunction = complete
		case cmd.ValidArgsFunction == nil && !strings.Contains(cmd.Use, " "): // it takes no arguments
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, complete := range values {
			if cmd.PersistentFlags().Lookup(name) != nil || cmd.LocalNonPersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete) // fails only for flags that do not exist
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
}

// words completes with the words that find returns.
func words(find func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		found, _ := find(ctx)
		return slices.DeleteFunc(found, func(word string) bool { return !strings.HasPrefix(word, typed) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// first is like words for the first argument, and completes no other.
func first(find func(context.Context) ([]string, error)) cobra.CompletionFunc {
	complete := words(find)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// conversationIDs returns the IDs of the stored conversations, the newest first, each with
// its title.
func (p *program) conversationIDs(ctx context.Context) (ids []string, err error) {
	infos, err := p.recent(ctx)
	for _, info := range infos {
		ids = append(ids, cobra.CompletionWithDesc(info.ID, display.Line(info.Title)))
	}
	return ids, err
}

// recent returns the stored conversations that were changed last.
func (p *program) recent(ctx context.Context) (infos []history.Info, err error) {
	manager, err := openManager(ctx, p, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	return manager.Recent(ctx, 100)
}

// completeTool completes an ensemble and then one of its tools, under its own name.
func (p *program) completeTool(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return words(p.ofServers(func(ctx context.Context, roster *ensemble.Roster) ([]string, error) {
		if len(args) == 0 {
			return completions.Ensembles(roster), nil
		}
		return completions.Tools(ctx, roster, args[0])
	}))(cmd, args, typed)
}

// ofServers returns a function that looks words up in the servers of the configuration.
func (p *program) ofServers(find func(context.Context, *ensemble.Roster) ([]string, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (found []string, err error) {
		err = withRoster(ctx, p, func(ctx context.Context, assembly *config.Assembly) error {
			found, err = find(ctx, assembly.Roster)
			return err
		})
		return found, err
	}
}

// approvalRules returns rules of --approve.
func (p *program) approvalRules(context.Context) ([]string, error) {
	cfg, _ := p.load() // nil without one
	return completions.ApprovalRules(cfg), nil
}

// modelNames returns the names of models.
func (p *program) modelNames(context.Context) ([]string, error) {
	cfg, _ := p.load() // nil without one
	return completions.Models(cfg), nil
}

// completeSetting completes KEY=VALUE.
func (p *program) completeSetting(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	cfg, _ := p.load() // nil without one
	return completions.Setting(cfg, typed)
}

// tags returns the tags of the stored conversations.
func (p *program) tags(ctx context.Context) (tags []string, err error) {
	infos, err := p.recent(ctx)
	for _, info := range infos {
		tags = append(tags, info.Tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags), err
}

// alwaysAllowed returns the tools that the user always allows.
func alwaysAllowed(context.Context) (tools []string, err error) {
	store, err := openApprovals()
	if err != nil {
		return nil, err
	}
	stored, err := store.List()
	for _, one := range stored {
		tools = append(tools, display.Line(one.Name()))
	}
	return tools, err
}
