// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
)

// fork continues in a copy of the first entries.
func (c *Chat) fork(ctx context.Context, argument string) error {
	all, err := c.entries(ctx)
	if err != nil {
		return err
	}
	n := len(all)
	if argument != "" {
		if n, err = c.number(argument, len(all)); err != nil {
			return err
		}
	}
	if n == 0 {
		return errors.New("there is nothing to copy yet")
	}
	before := c.Session.Conversation().ID()
	if err := c.copyTo(ctx, all, n); err != nil {
		return err
	}
	c.faint("This is a copy of the first %d entries. The original is unchanged%s", n, c.wayBack(before))
	return nil
}

// wayBack tells how to return to a conversation; its beginning ends a sentence.
func (c *Chat) wayBack(id string) string {
	if c.Session.Store() == nil {
		return ", but it cannot be continued, because conversations are not stored."
	}
	return "; /resume " + display.Text(id) + " returns to it."
}

// copyTo opens a copy of the first n canisters. Its ID is its own, and so are the
// idempotency keys of its calls.
func (c *Chat) copyTo(ctx context.Context, all []canister.Canister, n int) error {
	store := c.Session.Store()
	switch {
	case store == nil:
		return c.Session.Switch(ctx, Opening{History: slices.Clone(all[:n])})
	case n == 0:
		return c.Session.Switch(ctx, Opening{})
	}
	id := histories.NewID()
	if err := store.Fork(ctx, c.Session.Conversation().ID(), n, id); err != nil {
		return err
	}
	return c.Session.Switch(ctx, Opening{ID: id})
}

// retry sends the last message again.
func (c *Chat) retry(ctx context.Context, _ string) error {
	all, at, err := c.lastMessage(ctx)
	if err != nil {
		return err
	}
	return c.sendInstead(ctx, all, at, all[at].(canister.User).Content)
}

// edit sends another message instead of the last one. Without one it puts the last
// message into the input.
func (c *Chat) edit(ctx context.Context, text string) error {
	all, at, err := c.lastMessage(ctx)
	if err != nil {
		return err
	}
	said := all[at].(canister.User).Content
	if text != "" {
		changed := slices.DeleteFunc(slices.Clone(said), func(content canister.Content) bool {
			_, isText := content.(canister.TextContent)
			return isText
		})
		return c.sendInstead(ctx, all, at, append(changed, canister.Text(text)))
	}
	before := canister.TextOf(said)
	if c.Session.Compose("/edit " + before) {
		return nil
	}
	c.Screen.PrintSafe(before + "\n")
	c.faint("This is your last message. /edit TEXT sends TEXT instead.")
	return nil
}

// lastMessage returns the conversation and the index of the user's last message.
func (c *Chat) lastMessage(ctx context.Context) ([]canister.Canister, int, error) {
	all, err := c.entries(ctx)
	if err != nil {
		return nil, 0, err
	}
	for i, entry := range slices.Backward(all) {
		if entry.Kind() == canister.KindUser {
			return all, i, nil
		}
	}
	return nil, 0, errors.New("you have not sent a message yet")
}

// sendInstead sends content in a copy that ends before the message at an index. The copy has
// the resources that this message names already.
func (c *Chat) sendInstead(ctx context.Context, all []canister.Canister, at int, content []canister.Content) error {
	before := c.Session.Conversation().ID()
	if err := c.copyTo(ctx, all, at); err != nil {
		return err
	}
	c.faint("This is a copy up to that message. The original is unchanged%s", c.wayBack(before))
	for _, entry := range all[at+1:] {
		if entry.Kind() == canister.KindInvocation {
			c.Screen.Note("Calls that the original has made are not undone; the copy may make them again.")
			break
		}
	}
	if ok, leave, err := c.Session.AddDocuments(ctx, canister.TextOf(content), canister.TextOf(canister.ContentOf(all[at]))); !ok {
		return outcome(leave, err)
	}
	return c.play(ctx, func(ctx context.Context) iter.Seq2[converse.Event, error] {
		return c.Session.Conversation().Send(ctx, content...)
	})
}

// number parses the number of an entry.
func (c *Chat) number(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("expected the number of an entry, from 1 to %d, and not %s; /history lists them", most, display.Line(text))
	}
	return n, nil
}
