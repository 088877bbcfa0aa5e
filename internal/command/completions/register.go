// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// limit bounds how long a shell waits for words that come from servers or from a store.
const limit = 5 * time.Second

// Register tells the shell which words fit the arguments of the commands below root, by
// their paths, and their flags, by name. Commands that take no arguments complete no files.
func Register(root *cobra.Command, arguments, flags map[string]cobra.CompletionFunc) {
	flags = maps.Clone(flags)
	maps.Copy(flags, fixed())
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		switch complete := arguments[path]; {
		case complete != nil:
			cmd.ValidArgsFunction = complete
		case cmd.ValidArgsFunction == nil && !strings.Contains(cmd.Use, " "): // it takes no arguments
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for name, complete := range flags {
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

// fixed returns what completes the flags whose words are always the same.
func fixed() map[string]cobra.CompletionFunc {
	flags := map[string]cobra.CompletionFunc{
		"config": cobra.FixedCompletions([]string{"toml", "json"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	for name, words := range map[string][]string{
		"log-level":  {"debug", "info", "warn", "error"},
		"log-format": {"console", "json"},
		"format":     {"jsonl", "markdown", "html"},
		"api":        {"chat", "responses", "messages"},
		"import":     {"all", "none"},
	} {
		flags[name] = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	for _, name := range []string{"base-url", "trust", "argument", "time-zone", "text", "id", "keep"} { // never a file
		flags[name] = cobra.NoFileCompletions
	}
	return flags
}

// Words completes with the words that find returns. If it fails, the shell completes
// nothing.
func Words(find func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		found, _ := find(ctx)
		return slices.DeleteFunc(found, func(word string) bool { return !strings.HasPrefix(word, typed) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// First is like Words for the first argument, and completes no other.
func First(find func(context.Context) ([]string, error)) cobra.CompletionFunc {
	complete := Words(find)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}
