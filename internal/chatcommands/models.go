// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
)

// configured returns the names of the configured models, the first one first.
func (c *Chat) configured() []string {
	names := []string{c.Config.Model.Name.Reveal()}
	for _, m := range c.Config.Model.Fallbacks {
		if name := m.Name.Reveal(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// model changes the model until the chat ends, or lists the configured ones.
func (c *Chat) model(ctx context.Context, name string) error {
	if name == "" {
		names := c.configured()
		c.Screen.Print("configured: " + display.Line(strings.Join(names, ", ")) + "\n")
		c.faint("/model NAME changes the model until the chat ends: to one of these, or to another model of the same server as %s.", display.Line(names[0]))
		return nil
	}
	model, err := c.Assembly.OpenModel(c.Config, name)
	if err != nil {
		return err
	}
	talk := c.Session.Conversation()
	opening := Opening{Model: model, ModelName: name, ID: talk.ID()}
	if c.Session.Store() == nil {
		opening.History = talk.History()
	}
	if err := c.Session.Switch(ctx, opening); err != nil {
		return err
	}
	c.faint("The model is %s until the chat ends.", display.Line(name))
	if !slices.Contains(c.configured(), name) {
		c.faint("It is not in the configuration; your next message shows whether the server has it.")
	}
	return nil
}

// compact summarises the older part of the conversation.
func (c *Chat) compact(ctx context.Context, _ string) error {
	if c.Config.Compaction == nil {
		return errors.New("the configuration has no table [compaction], which says how conversations are summarised; an empty one is enough")
	}
	talk := c.Session.Conversation()
	var done *converse.CompactionCompleted
	failed := false // or cancelled, and the user knows
	err := c.play(ctx, func(ctx context.Context) iter.Seq2[converse.Event, error] {
		return func(yield func(converse.Event, error) bool) {
			for event, err := range talk.Compact(ctx) {
				if e, ok := event.(converse.CompactionCompleted); ok {
					done = &e
				}
				failed = failed || err != nil
				if !yield(event, err) {
					return
				}
			}
		}
	})
	switch {
	case err != nil || failed:
		return err
	case done == nil:
		c.faint("There is nothing to summarise yet: the last exchanges always stay as they are.")
	default:
		c.faint("The model gets a summary of everything before the last exchanges: about %s instead of %s tokens. /history still has all entries.", tokens(done.After), tokens(done.Before))
	}
	return nil
}

// save keeps the conversation, with a title.
func (c *Chat) save(ctx context.Context, title string) error {
	talk := c.Session.Conversation()
	if talk.Length() == 0 {
		return errors.New("the conversation is empty")
	}
	store, id := c.Session.Store(), talk.ID()
	if store == nil {
		var err error
		if store, id, err = c.keep(ctx); err != nil {
			return err
		}
	}
	if title != "" {
		if err := store.Describe(ctx, id, history.Change{Title: &title}); err != nil {
			return err
		}
	}
	c.faint("The conversation is stored as %s; /resume %s returns to it.", display.Text(id), display.Text(id))
	return nil
}

// keep stores a conversation that was not stored, and continues there.
func (c *Chat) keep(ctx context.Context) (history.Store, string, error) {
	store, err := c.Location.OpenOwn(ctx, c.Config)
	if err != nil {
		return nil, "", fmt.Errorf("the conversation cannot be stored: %w", err)
	}
	id := histories.NewID()
	if err := store.Append(ctx, id, 0, c.Session.Conversation().History()...); err != nil {
		return nil, "", errors.Join(err, store.Close())
	}
	if err := c.Session.Switch(ctx, Opening{Store: store, ID: id}); err != nil {
		return nil, "", errors.Join(err, store.Close())
	}
	return store, id, nil
}
