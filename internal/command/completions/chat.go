// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/chatui"
)

// maxProposals bounds the proposals for one text in chat.
const maxProposals = 100

// Chat proposes completions of what the user types in chat.
type Chat struct {
	// Roster has the tools, prompts and resources. Servers that are away are not connected.
	Roster *ensemble.Roster
	// Candidates returns the values of a source that begin with a prefix. It is not asked
	// for files.
	Candidates func(ctx context.Context, source chatcommands.Source, prefix string) []string
}

// Complete proposes completions of a text: commands and their arguments, resources after
// "@", and otherwise tools and prompts.
func (c Chat) Complete(ctx context.Context, text string) chatui.Completions {
	word := text[strings.LastIndexAny(text, " \n\t")+1:]
	found := chatui.Completions{Replace: len(word)}
	add := func(name, about string) {
		if strings.HasPrefix(name, word) && len(found.Items) < maxProposals {
			found.Items = append(found.Items, chatui.Completion{Text: name, About: about})
		}
	}
	name, argument, hasArgument := strings.Cut(text, " ")
	switch {
	case strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") && !hasArgument:
		for _, command := range chatcommands.All() {
			add(command.Name, strings.TrimSpace(command.Arguments+" "+command.Help))
		}
	case strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//"):
		found.Replace = len(argument)
		word = argument
		for _, command := range chatcommands.All() {
			if command.Name == name {
				for _, value := range c.arguments(ctx, command.Completes, argument) {
					add(value, "")
				}
			}
		}
	case strings.HasPrefix(word, "@"):
		if all, err := c.Roster.Resources(ctx); err == nil {
			for _, one := range all.Resources {
				add("@"+one.URI, cmp.Or(one.Title, one.Name))
			}
		}
	case word != "":
		if catalog, err := c.Roster.Latest(ctx); err == nil {
			for _, tool := range catalog.Tools() {
				add(tool.Name(), tool.Definition().Description)
			}
		}
		if all, err := c.Roster.Prompts(ctx); err == nil {
			for _, one := range all.Prompts {
				add(one.FullName(), one.Description)
			}
		}
	}
	return found
}

// arguments returns the values of a source that begin with a prefix.
func (c Chat) arguments(ctx context.Context, source chatcommands.Source, prefix string) []string {
	if source == chatcommands.Files {
		return files(prefix)
	}
	return c.Candidates(ctx, source, prefix)
}

// files returns the paths that begin with a prefix. Those of folders end with a separator.
func files(prefix string) []string {
	paths, err := filepath.Glob(escapeGlob(prefix) + "*")
	if err != nil {
		return nil
	}
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			paths[i] += string(filepath.Separator)
		}
	}
	return paths
}

// escapeGlob makes a text match itself in a pattern of [filepath.Glob].
func escapeGlob(text string) string {
	if filepath.Separator == '\\' { // there is no escaping
		return text
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}
