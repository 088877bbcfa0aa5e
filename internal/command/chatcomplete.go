// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/chatui"
)

// maxCompletions bounds the proposals for one text.
const maxCompletions = 100

// complete proposes completions of a text of the user: commands and their arguments,
// resources after "@", and otherwise tools and prompts. It connects to no server that is
// away.
func (c *chat) complete(ctx context.Context, text string) chatui.Completions {
	ctx = forProgram(ctx, c.assembly)
	word := text[strings.LastIndexAny(text, " \n\t")+1:]
	found := chatui.Completions{Replace: len(word)}
	add := func(name, about string) {
		if strings.HasPrefix(name, word) && len(found.Items) < maxCompletions {
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
		if all, err := c.assembly.Roster.Resources(ctx); err == nil {
			for _, one := range all.Resources {
				add("@"+one.URI, cmp.Or(one.Title, one.Name))
			}
		}
	case word != "":
		if catalog, err := c.assembly.Roster.Latest(ctx); err == nil {
			for _, tool := range catalog.Tools() {
				add(tool.Name(), tool.Definition().Description)
			}
		}
		if all, err := c.assembly.Roster.Prompts(ctx); err == nil {
			for _, one := range all.Prompts {
				add(one.FullName(), one.Description)
			}
		}
	}
	return found
}

// arguments returns the values of a source that begin with a prefix.
func (c *chat) arguments(ctx context.Context, source chatcommands.Source, prefix string) []string {
	if source == chatcommands.Files {
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
	commands := c.commands()
	commands.Session = shownSession{commandSession{c}, c.shown.Load()}
	return commands.Candidates(ctx, source, prefix)
}

// escapeGlob makes a text match itself in a pattern of [filepath.Glob].
func escapeGlob(text string) string {
	if filepath.Separator == '\\' { // there is no escaping
		return text
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

// shownSession is the session of the moment, for completions, which are looked up while
// commands may change it.
type shownSession struct {
	commandSession
	session *session
}

func (s shownSession) Conversation() *converse.Conversation { return s.session.conversation }

func (s shownSession) Store() history.Store { return s.session.store }

// addDocuments adds the resources to the conversation that a message names as @URI. It
// reports whether the message can be sent; otherwise it has printed why.
func (c *chat) addDocuments(ctx context.Context, said string) (ok, leave bool, err error) {
	var uris []string
	for word := range strings.FieldsSeq(said) {
		if uri, found := strings.CutPrefix(word, "@"); found && strings.Contains(uri, "://") && !slices.Contains(uris, uri) {
			uris = append(uris, uri)
		}
	}
	if len(uris) == 0 {
		return true, false, nil
	}
	err = c.interruptible(ctx, func(ctx context.Context) error {
		return addOpening(ctx, c.program, &opening{documents: uris}, c.assembly, c.session.conversation)
	})
	if err == nil {
		return true, false, nil
	}
	commandSession{c}.Compose(said)
	leave, err = c.printed(ctx, c.session.explain(err))
	return false, leave, err
}
