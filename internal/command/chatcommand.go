// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/shown"
)

const chatHelp = `/tools    the tools on offer
/history  what was said so far
/quit     leave; so does Ctrl-D
Ctrl-C    cancel what is going on; twice: leave
`

// command does what a line that begins with / says.
func (c *chat) command(ctx context.Context, line string) (leave bool, err error) {
	switch line {
	case "/quit", "/exit":
		return true, nil
	case "/help":
		c.screen.result(chatHelp)
	case "/tools":
		return false, c.listTools(ctx)
	case "/history":
		for _, held := range c.kept.talk.History() {
			c.screen.result(historyLine(c.screen.results, held) + "\n")
		}
	default:
		c.screen.note("there is no %s; there are /tools, /history, /help and /quit", shown.Text(line))
	}
	return false, c.screen.failure()
}

func (c *chat) listTools(ctx context.Context) error {
	connecting := c.screen.begin("connecting")
	catalog, err := c.assembly.Roster.Catalog(ctx)
	c.screen.end(connecting)
	if err != nil {
		c.screen.note("%s%s", c.screen.notes.bad("consort: "), shown.Text(err.Error()))
		return err
	}
	c.screen.result(newToolList(c.assembly, catalog).text(c.screen.results, c.assembly.Roster))
	return c.screen.failure()
}

// historyLine is a canister in one line.
func historyLine(paint palette, held canister.Canister) string {
	kind := paint.name(pad(string(held.Kind()), 10))
	switch h := held.(type) {
	case canister.User:
		return kind + "  " + shortly(h.Content)
	case canister.Assistant:
		return kind + "  " + shortly(h.Content)
	case canister.Supervisor:
		return kind + "  " + shortly(h.Content)
	case canister.Document:
		return kind + "  " + strings.TrimSpace(shown.Line(h.Title)+" "+shortly(h.Content))
	case canister.Invocation:
		return kind + "  " + fit(callText(h), 200)
	case canister.Result:
		return kind + "  " + fit(resultText(h), 200)
	}
	return kind + fmt.Sprintf("  %T", held)
}

func shortly(contents []canister.Content) string {
	return fit(shown.Line(shown.Contents(contents)), 200)
}
