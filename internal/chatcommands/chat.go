// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
)

// Session is the conversation that the commands act on, and can replace.
type Session interface {
	// Conversation returns the current conversation.
	Conversation() *converse.Conversation
	// CanContinue returns an error if an unfinished turn of the current conversation is to be
	// continued by another program only.
	CanContinue() error
	// Store returns the store that keeps it; nil if none does.
	Store() history.Store
	// Switch closes the current conversation and opens another one. After an error the
	// current one is still open.
	Switch(ctx context.Context, to Opening) error
	// Play renders the events of a turn, which ends early if the user presses Ctrl-C, and
	// prints its error. It returns errLeave's meaning: leave reports whether the user
	// leaves.
	Play(ctx context.Context, events func(context.Context) iter.Seq2[converse.Event, error]) (leave bool, err error)
	// Do runs a piece of work as Play does.
	Do(ctx context.Context, work func(context.Context) error) (leave bool, err error)
	// AddDocuments adds the resources that a message names as @URI and the message before does
	// not. Ok reports whether the message can be sent; otherwise an error was printed.
	AddDocuments(ctx context.Context, message, before string) (ok, leave bool, err error)
	// Compose puts text into the input for the user to change and send. It returns false
	// if the input cannot be edited.
	Compose(text string) bool
}

// Opening says which conversation to open. Its zero value is a new one.
type Opening struct {
	ID        string              // of a stored conversation; empty for another one
	History   []canister.Canister // what it begins with, if no store keeps it
	Model     converse.Model      // nil for the same one
	ModelName string              // of Model
	Store     history.Store       // nil for the same one; it belongs to the session from now on
}

// Chat runs the commands.
type Chat struct {
	Screen   *terminal.Screen
	Config   *config.Config
	Assembly *config.Assembly
	Location *histories.Location
	Session  Session
}

// errLeave says that the user leaves.
var errLeave = errors.New("the user leaves")

// Run runs a command, and prints its error, unless standard output failed. Leave reports whether the user leaves.
func (c *Chat) Run(ctx context.Context, command *Command, argument string) (leave bool, err error) {
	err = command.run(c, ctx, argument)
	if errors.Is(err, errLeave) {
		return true, nil
	}
	if err != nil && !errors.Is(err, errPrinted) && !errors.Is(err, c.Screen.Err()) && ctx.Err() == nil {
		c.Complain(err)
	}
	return false, errors.Join(err, c.Screen.Err())
}

// errPrinted is in the chain of errors that were printed already.
var errPrinted = errors.New("the turn failed")

// Complain prints an error.
func (c *Chat) Complain(err error) {
	c.Screen.Note("%s%s", c.Screen.Notes.Bad("consort: "), display.Text(err.Error()))
}

// faint prints a note of less importance.
func (c *Chat) faint(format string, args ...any) {
	c.Screen.Hint(fmt.Sprintf(format, args...))
}

// play runs a turn.
func (c *Chat) play(ctx context.Context, events func(context.Context) iter.Seq2[converse.Event, error]) error {
	return outcome(c.Session.Play(ctx, events))
}

// outcome returns the error of a command for what the session has done and printed.
func outcome(leave bool, err error) error {
	switch {
	case leave:
		return errLeave
	case err != nil:
		return fmt.Errorf("%w: %w", errPrinted, err)
	}
	return nil
}

// entries returns the whole conversation. The store may hold more of it than is still
// sent to the model.
func (c *Chat) entries(ctx context.Context) ([]canister.Canister, error) {
	talk := c.Session.Conversation()
	if store := c.Session.Store(); store != nil {
		return history.From(ctx, store, talk.ID(), 0)
	}
	return talk.History(), nil
}

func (c *Chat) help(context.Context, string) error {
	c.Screen.Print(Text())
	return nil
}

// begin begins a new conversation.
func (c *Chat) begin(ctx context.Context, _ string) error {
	if err := c.Session.Switch(ctx, Opening{}); err != nil {
		return err
	}
	c.faint("This is a new conversation.")
	return nil
}

// resume continues the unfinished turn of this conversation, or opens another one.
// Without either it lists the conversations.
func (c *Chat) resume(ctx context.Context, id string) error {
	talk := c.Session.Conversation()
	if id == "" || id == talk.ID() {
		if _, done := talk.Next().(converse.Done); !done {
			if err := c.Session.CanContinue(); err != nil {
				return err
			}
			return c.play(ctx, talk.Continue)
		}
	}
	switch store := c.Session.Store(); {
	case id == talk.ID():
		c.faint("This is conversation %s already; its last turn is done.", display.Word(id))
		return nil
	case store == nil:
		return errors.New("conversations are not stored, so there is no other one to continue; /save stores this one")
	case id == "":
		return c.listRecent(ctx, store)
	default:
		info, err := c.Location.Known(ctx, store, id)
		if err != nil {
			return err
		}
		return c.Session.Switch(ctx, Opening{ID: info.ID})
	}
}

// maxRecent is how many conversations /resume lists.
const maxRecent = 10

// listRecent lists the latest conversations of the user.
func (c *Chat) listRecent(ctx context.Context, store history.Store) error {
	rows := [][]string{}
	var unread error // does not hide the others
	for info, err := range store.List(ctx, history.Filter{}) {
		if unread = errors.Join(unread, err); err != nil {
			continue
		}
		if info.Owner != "" || info.ID == c.Session.Conversation().ID() {
			continue
		}
		info = histories.Titled{Store: store}.Entitled(ctx, info)
		rows = append(rows, []string{display.Text(info.ID), info.Changed.Local().Format("2006-01-02 15:04"), display.Line(info.Title)})
		if len(rows) == maxRecent {
			break
		}
	}
	if len(rows) == 0 {
		if unread == nil {
			c.faint("There is no other conversation.")
		}
		return unread
	}
	c.Screen.Print(terminal.Table(rows, nil))
	c.faint("/resume ID continues one of them.")
	return unread
}

func (c *Chat) tools(ctx context.Context, _ string) error {
	return outcome(c.Session.Do(ctx, func(ctx context.Context) error {
		connecting := c.Screen.Begin("connecting")
		catalog, err := c.Assembly.Roster.Catalog(ctx)
		connecting.End()
		if err == nil {
			c.Screen.Print(reports.NewToolList(c.Assembly, catalog).Text(c.Screen.Results, c.Assembly.Roster))
		}
		return err
	}))
}

func (c *Chat) servers(context.Context, string) error {
	health := c.Assembly.Roster.Health()
	if len(health.Ensembles) == 0 {
		c.faint("The configuration has no servers.")
		return nil
	}
	c.Screen.Print(reports.HealthList(health, c.Screen.Results))
	return nil
}
