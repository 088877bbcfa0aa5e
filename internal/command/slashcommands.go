// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
)

const chatHelp = `/tools    list the tools
/history  print the messages so far
/quit     leave; so does Ctrl-D
Ctrl-C    cancel the current turn; twice: leave
`

// command runs a command line that begins with a slash.
func (c *chat) command(ctx context.Context, line string) (leave bool, err error) {
	switch line {
	case "/quit", "/exit":
		return true, nil
	case "/help":
		c.program.screen.Print(chatHelp)
	case "/tools":
		return false, c.listTools(ctx)
	case "/history":
		return false, c.listHistory(ctx)
	default:
		c.program.screen.Note("unknown command %s; the commands are /tools, /history, /help and /quit", display.Text(line))
	}
	return false, c.program.screen.Err()
}

// listHistory prints the whole conversation. The store may hold more of it than is still
// sent to the model.
func (c *chat) listHistory(ctx context.Context) error {
	said := func(yield func(canister.Canister, error) bool) {
		for _, held := range c.session.conversation.History() {
			if !yield(held, nil) {
				return
			}
		}
	}
	if c.session.store != nil {
		said = c.session.store.Read(ctx, c.session.conversation.ID(), 0)
	}
	for held, err := range said {
		if err != nil {
			return c.complain(err)
		}
		c.program.screen.Print(terminal.HistoryLine(c.program.screen.Results, held) + "\n")
	}
	return c.program.screen.Err()
}

// complain prints err and returns it.
func (c *chat) complain(err error) error {
	c.program.screen.Note("%s%s", c.program.screen.Notes.Bad("consort: "), display.Text(err.Error()))
	return err
}

func (c *chat) listTools(ctx context.Context) error {
	connecting := c.program.screen.Begin("connecting")
	catalog, err := c.assembly.Roster.Catalog(ctx)
	connecting.End()
	if err != nil {
		return c.complain(err)
	}
	c.program.screen.Print(reports.NewToolList(c.assembly.Roster, catalog, c.assembly.Model, c.assembly.Options.Limits.Tools).Text(c.program.screen.Results, c.assembly.Roster))
	return c.program.screen.Err()
}
