// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/chatui"
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
)

// commands returns the commands of the chat.
func (c *chat) commands() *chatcommands.Chat {
	return &chatcommands.Chat{
		Screen: c.program.screen, Config: c.program.location.Loaded, Assembly: c.assembly, Location: &c.program.location,
		Session: commandSession{c},
	}
}

// handleInput handles an input and reports whether the user leaves.
func (c *chat) handleInput(ctx context.Context, line string) (leave bool, err error) {
	command, argument, message, err := chatcommands.Parse(line)
	switch {
	case err != nil:
		c.commands().Complain(err)
		return false, exit.With(exit.Usage, nil)
	case command != nil:
		if leave, err = c.commands().Run(ctx, command, argument); err != nil {
			err = exit.With(exit.StatusOf(err), nil) // it is already printed
		}
		return leave, err
	case message == "":
		return false, nil
	}
	return c.reply(ctx, message)
}

// commandSession lets commands act on the conversation of a chat.
type commandSession struct{ chat *chat }

func (s commandSession) Conversation() *converse.Conversation { return s.chat.session.Conversation }

func (s commandSession) CanContinue() error { return s.chat.session.CanContinue() }

func (s commandSession) Store() history.Store { return s.chat.session.Store }

func (s commandSession) Play(ctx context.Context, events func(context.Context) iter.Seq2[converse.Event, error]) (leave bool, err error) {
	return s.chat.play(ctx, events)
}

func (s commandSession) Do(ctx context.Context, work func(context.Context) error) (leave bool, err error) {
	return s.chat.printed(ctx, s.chat.interruptible(ctx, work))
}

func (s commandSession) AddDocuments(ctx context.Context, message, before string) (ok, leave bool, err error) {
	return s.chat.addDocuments(ctx, message, before)
}

func (s commandSession) Compose(text string) bool {
	ui, ok := s.chat.user.(*chatui.UI)
	if ok {
		ui.Restore(text)
	}
	return ok
}

// Switch closes the conversation and opens another one.
func (s commandSession) Switch(ctx context.Context, to chatcommands.Opening) error {
	c, was := s.chat, s.chat.session
	// Nothing is stored of a conversation that is empty.
	unstored := to.ID == was.Conversation.ID() && was.Conversation.Length() == 0
	o := session.Options{Store: was.Store, Model: was.Model, Want: histories.Choice{ID: to.ID, Must: to.ID != "" && !unstored}, History: to.History}
	if to.Model != nil {
		o.Model = to.Model
	}
	if to.Store != nil {
		o.Store = to.Store
	}
	next, err := o.Open(ctx, c.program.session(), c.assembly)
	if err != nil {
		return err
	}
	next.ModelName = cmp.Or(to.ModelName, was.ModelName)
	c.session = next
	c.shown.Store(next)
	if to.Store != nil {
		c.stores = append(c.stores, to.Store)
	}
	if to.ID != "" && to.ID != was.Conversation.ID() && to.Store == nil {
		c.greet(ctx)
	}
	return was.Conversation.Close(context.WithoutCancel(ctx))
}

// closeSession closes the conversation, and the stores that commands have opened.
func (c *chat) closeSession() error {
	err := c.session.Conversation.Close(context.Background())
	for _, store := range c.stores {
		err = errors.Join(err, store.Close())
	}
	return err
}
