// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/histories"
)

// actTime bounds how long an action may take, such as the wait for a running turn.
const actTime = 10 * time.Second

// local returns the path of a conversation below [Prefix].
func local(conversation string) string { return "/conversations/" + url.PathEscape(conversation) }

// runs reports whether the engine of this process may continue a conversation.
func (c *Console) runs(info history.Info) bool {
	return c.Engine != nil && (c.Runs == nil || c.Runs(info))
}

// actions returns the forms for a message and for the end of the turn.
func (c conversationPages) actions(p *person, info history.Info) part {
	if !p.Role.May(Answer) {
		return nil
	}
	if !c.console.runs(info) {
		return el("p", class("faint"), text("This process does not run this conversation. To continue it: consort resume "+histories.Word(info.ID)))
	}
	open := (history.Filter{Open: true}).Match(info)
	return el("section", el("h2", text("Continue")),
		c.console.form(p, local(info.ID)+"/send", class("stack"), area("message", "Message", "", attr("required", "")), el("button", text("Send"))),
		when(open, c.console.form(p, local(info.ID)+"/cancel", el("button", class("danger"), text("Cancel the turn")))))
}

func (c conversationPages) beginForm(p *person) part {
	return el("section", el("h2", text("New conversation")),
		c.console.form(p, "/conversations", class("stack"), area("message", "Message", "", attr("required", "")), el("button", text("Send"))))
}

// begin starts a conversation of the person.
func (c conversationPages) begin(w http.ResponseWriter, r *http.Request, p *person) {
	message := strings.TrimSpace(r.PostForm.Get("message"))
	if c.console.Engine == nil || c.console.Store == nil || message == "" {
		c.console.back(w, r, p, "/conversations", "", errors.New("a conversation begins with a message, and needs a server that runs conversations"))
		return
	}
	name := histories.NewID()
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	err := c.start(ctx, p, name, userSaid(message))
	c.console.record(r, p, "begin", name, err)
	if err != nil {
		c.console.back(w, r, p, "/conversations", "", err)
		return
	}
	http.Redirect(w, r, pathOf(name), http.StatusSeeOther)
}

// start sets the owner of a conversation before any work on it begins.
func (c conversationPages) start(ctx context.Context, p *person, name string, said canister.User) error {
	if err := c.console.Begin(ctx, name, said); err != nil {
		return err
	}
	title := histories.TitleOf(said)
	change := history.Change{Title: &title}
	if p.Owner != "" {
		change.Owner = &p.Owner
	}
	if err := c.console.Store.Describe(ctx, name, change); err != nil {
		return err
	}
	c.console.prewatch(ctx, name)
	return c.console.Engine.Send(ctx, name, said)
}

func userSaid(message string) canister.User {
	return canister.User{Head: canister.Head{ID: rand.Text(), Time: time.Now()}, Content: canister.Texts(message)}
}

// act sends a message to a conversation, cancels its turn, or forks it.
func (c conversationPages) act(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actTime)
	defer cancel()
	what, to, done := r.PathValue("what"), local(info.ID), ""
	var err error
	switch {
	case clientcalls.IsApproval(info):
		err = errors.New("this is the approval of a client's call, which is answered, and nothing else")
	case what == "fork":
		to, err = c.fork(ctx, info, r.PostForm.Get("at"))
		done = "This is a fork of " + info.ID + "."
	case what != "send" && what != "cancel":
		c.console.refuse(w, r, http.StatusNotFound, "There is no such action.")
		return
	case !c.console.runs(info):
		err = errors.New("this process does not run this conversation")
	case what == "cancel":
		err, done = c.console.Engine.Cancel(ctx, info.ID), "The turn was cancelled."
	default:
		err = c.send(ctx, info, r.PostForm.Get("message"))
	}
	c.console.record(r, p, what, info.ID, err)
	c.console.back(w, r, p, to, done, err)
}

func (c conversationPages) send(ctx context.Context, info history.Info, message string) error {
	if message = strings.TrimSpace(message); message == "" {
		return errors.New("the message is empty")
	}
	c.console.prewatch(ctx, info.ID)
	switch err := c.console.Engine.Send(ctx, info.ID, userSaid(message)); {
	case errors.Is(err, engine.ErrWaiting):
		return fmt.Errorf("the conversation waits for an answer, and accepts no message until then: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("a turn is running, and the message was not sent: send it again, or cancel the turn first: %w", err)
	default:
		return err
	}
}

// fork copies a conversation up to a canister, and returns the path of the copy.
func (c conversationPages) fork(ctx context.Context, info history.Info, at string) (path string, err error) {
	length, err := strconv.Atoi(at)
	if err != nil || length < 1 || length > info.Length {
		return local(info.ID), fmt.Errorf("a fork begins after one of the canisters 1 to %d", info.Length)
	}
	name := histories.NewID()
	if err := c.console.Store.Fork(ctx, info.ID, length, name); err != nil {
		return local(info.ID), err
	}
	return local(name), nil
}
