// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"slices"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/command/completions"
	"github.com/consort-go/consort/internal/display"
	"github.com/spf13/cobra"
)

// addCompletions tells the shell which words fit the arguments and flags of the commands
// below root. If words are not available, for example because the configuration is invalid,
// the shell completes nothing.
func addCompletions(p *program, root *cobra.Command) {
	prompts, resources := p.ofServers(completions.Prompts), p.ofServers(completions.Resources)
	arguments := map[string]cobra.CompletionFunc{
		"approve": completions.First(p.conversationIDs), "resume": completions.First(p.conversationIDs),
		"history delete": completions.First(p.conversationIDs), "history fork": completions.First(p.conversationIDs), "history rename": completions.First(p.conversationIDs),
		"history show": completions.First(p.conversationIDs), "history tag": completions.First(p.conversationIDs), "history export": completions.Words(p.conversationIDs),
		"call": p.completeTool, "pins accept": p.completeTool, "prompts": completions.First(prompts),
		"approvals revoke": completions.First(alwaysAllowed), "login": completions.First(p.loginNames), "logout": completions.First(p.loginNames),
	}
	flags := map[string]cobra.CompletionFunc{
		"conversation": completions.Words(p.conversationIDs),
		"prompt":       completions.Words(prompts),
		"document":     completions.Words(resources),
		"read":         completions.Words(resources),
		"model":        completions.Words(p.modelNames),
		"set":          p.completeSetting,
		"approve":      completions.Words(p.approvalRules),
		"tag":          completions.Words(p.tags),
	}
	completions.Register(root, arguments, flags)
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
	return completions.Words(p.ofServers(func(ctx context.Context, roster *ensemble.Roster) ([]string, error) {
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
