// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/chatui"
	"github.com/consort-go/consort/internal/command/completions"
	"github.com/consort-go/consort/internal/command/session"
)

// complete proposes completions of a text of the user.
func (c *chat) complete(ctx context.Context, text string) chatui.Completions {
	candidates := func(ctx context.Context, source chatcommands.Source, prefix string) []string {
		commands := c.commands()
		commands.Session = shownSession{commandSession{c}, c.shown.Load()}
		return commands.Candidates(ctx, source, prefix)
	}
	return completions.Chat{Roster: c.assembly.Roster, Candidates: candidates}.Complete(forProgram(ctx, c.assembly), text)
}

// shownSession is the session of the moment, for completions, which are looked up while
// commands may change it.
type shownSession struct {
	commandSession
	session *session.Session
}

func (s shownSession) Conversation() *converse.Conversation { return s.session.Conversation }

func (s shownSession) Store() history.Store { return s.session.Store }

// addDocuments adds the resources to the conversation that a message names as @URI, and the
// message before does not. It reports whether the message can be sent; otherwise it has printed
// why.
func (c *chat) addDocuments(ctx context.Context, said, before string) (ok, leave bool, err error) {
	had := resourcesIn(before)
	uris := slices.DeleteFunc(resourcesIn(said), func(uri string) bool { return slices.Contains(had, uri) })
	if len(uris) == 0 {
		return true, false, nil
	}
	err = c.interruptible(ctx, func(ctx context.Context) error {
		return addOpening(ctx, c.program, &opening{documents: uris}, c.assembly, c.session.Conversation)
	})
	if err == nil {
		return true, false, nil
	}
	commandSession{c}.Compose(said)
	leave, err = c.printed(ctx, c.session.Explain(err))
	return false, leave, err
}

// resourcesIn returns the URIs that a message names as @URI, each once.
func resourcesIn(said string) []string {
	var uris []string
	for word := range strings.FieldsSeq(said) {
		if uri, found := strings.CutPrefix(word, "@"); found && strings.Contains(uri, "://") && !slices.Contains(uris, uri) {
			uris = append(uris, uri)
		}
	}
	return uris
}
