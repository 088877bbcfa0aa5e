// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/turncancel"
)

// actTime bounds how long an action may take, such as the wait for a running turn. A cancel may take longer.
const actTime = 10 * time.Second

// actContext returns the context of an action. The action goes on if the reader closes the page meanwhile: half of
// it would be a message that nothing answers, or a server that is not connected again.
func actContext(w http.ResponseWriter, r *http.Request, limit time.Duration) (context.Context, context.CancelFunc) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + 30*time.Second)) // not every connection supports it
	return context.WithTimeout(context.WithoutCancel(r.Context()), limit)
}

// conversationPath returns the path of a conversation below [Prefix].
func conversationPath(conversation string) string {
	return "/conversations/" + url.PathEscape(conversation)
}

// pathOf returns the path of a conversation, with the prefix.
func pathOf(conversation string) string { return Prefix + conversationPath(conversation) }

// runs reports whether the engine of this process may continue a conversation.
func (c *Console) runs(info history.Info) bool {
	return c.Engine != nil && (c.Runs == nil || c.Runs(info))
}

// actions returns the forms for a message and for the end of the turn.
func (c conversationPages) actions(p *person, info history.Info, with written) part {
	if !p.Role.May(Answer) {
		return nil
	}
	if !c.console.runs(info) {
		return el("p", class("faint"), text("This process does not run this conversation. To continue it: consort resume "+display.Word(info.ID)))
	}
	why := ""
	switch {
	case !isUnfinished(info) || info.Last == canister.KindWait:
	case c.console.Active == nil:
		why = "This page does not know whether the turn is worked on. If it has failed, resume it."
	case c.isLeft(info):
		why = leftText
	}
	return el("section", el("h2", text("Continue")),
		when(why != "", el("p", text(why)), c.resumeForm(p, info)),
		c.messageForm(p, conversationPath(info.ID)+"/send", with),
		when(isUnfinished(info), c.console.form(p, conversationPath(info.ID)+"/cancel", hidden("shown", strconv.Itoa(info.Length)), el("button", class("danger"), text("Cancel the turn")))))
}

// leftText is about turns for which isLeft holds.
const leftText = "Not running here: this process does not continue the turn. Unless another process does, nothing continues it."

// resumeForm returns the button that continues a turn.
func (c conversationPages) resumeForm(p *person, info history.Info) part {
	return c.console.form(p, conversationPath(info.ID)+"/resume", class("inline"),
		el("button", attr("aria-label", "Resume the turn of "+c.console.Redact(cmp.Or(info.Title, info.ID))), text("Resume the turn")))
}

func isUnfinished(info history.Info) bool { return (history.Filter{Open: true}).Match(info) }

// isLeft reports whether the turn of a conversation is not over and this process does not continue it by
// itself: it is a fork in the middle of a turn, or the turn has failed.
func (c conversationPages) isLeft(info history.Info) bool {
	return isUnfinished(info) && c.console.Active != nil && !c.console.Active(info.ID)
}

func (c conversationPages) beginForm(p *person, with written) part {
	return el("section", el("h2", text("New conversation")), c.messageForm(p, "/conversations", with))
}

// mayBegin reports whether a person may begin conversations, which belong to the person, or to the one who started
// the process.
func (c conversationPages) mayBegin(p *person) bool {
	return c.console.Engine != nil && p.Role.May(Answer) && (p.Owner != "" || p.session.operates)
}

// begin starts a conversation of the person.
func (c conversationPages) begin(w http.ResponseWriter, r *http.Request, p *person) {
	message := strings.TrimSpace(r.PostForm.Get("message"))
	if !c.mayBegin(p) || c.console.Store == nil || message == "" {
		c.console.back(w, r, p, "/conversations", "", errors.New("a conversation begins with a message, and needs an owner and a server that runs conversations"))
		return
	}
	form := c.console.sessions.formOf(p.session, r, message)
	ctx, cancel := actContext(w, r, actTime)
	defer cancel()
	err := form.send(message, func(said canister.User) error {
		return admit(ctx, c.console, httpapi.Entry{Canister: said}, func(ctx context.Context) error { return c.start(ctx, p, form.id, said) })
	})
	c.console.record(r, p, "begin", form.id, err)
	if leave(c.console, r, p, "", err) {
		c.historyPage(w, r, p) // with the text
		return
	}
	http.Redirect(w, r, pathOf(form.id), http.StatusSeeOther)
}

// start sets the owner of a conversation before any work on it begins.
func (c conversationPages) start(ctx context.Context, p *person, name string, said canister.User) error {
	if err := c.console.Begin(ctx, name, said); err != nil {
		return err
	}
	title := histories.TitleOf(canister.User{Content: redact.Contents(said.Content, c.console.Redact)}) // before it is cut
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

// act sends a message to a conversation, cancels or resumes its turn, or forks it.
func (c conversationPages) act(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	what, to, done := r.PathValue("what"), conversationPath(info.ID), ""
	limit := map[bool]time.Duration{true: turncancel.Limit, false: actTime}[what == "cancel"]
	ctx, cancel := actContext(w, r, limit)
	defer cancel()
	var err error
	switch {
	case clientcalls.IsApproval(info):
		err = errors.New("this is the approval of a client's call, which is answered, and nothing else")
	case what == "fork":
		to, err = c.fork(ctx, info, r.PostForm.Get("at"))
		done = "This is a fork of " + info.ID + "."
	case !slices.Contains([]string{"send", "cancel", "resume"}, what):
		c.console.refuse(w, r, http.StatusNotFound, "There is no such action.")
		return
	case !c.console.runs(info):
		err = errors.New("this process does not run this conversation")
	case what != "send" && !isUnfinished(info):
		err = errors.New("nothing was done: the turn is over already")
	case what == "cancel":
		err, done = c.cancel(ctx, info, r.PostForm.Get("shown")), "The turn was cancelled."
	case what == "resume":
		err, done = c.resume(ctx, info), "The turn continues."
	default:
		message := strings.TrimSpace(r.PostForm.Get("message"))
		err = c.console.sessions.formOf(p.session, r, message).send(message, func(said canister.User) error { return c.send(ctx, info, said) })
	}
	c.console.record(r, p, what, info.ID, err)
	if leave(c.console, r, p, done, err) && what == "send" {
		c.conversationPage(w, r, p) // with the text
		return
	}
	http.Redirect(w, r, Prefix+to, http.StatusSeeOther)
}

func (c conversationPages) send(ctx context.Context, info history.Info, said canister.User) error {
	if canister.TextOf(said.Content) == "" {
		return errors.New("the message is empty")
	}
	c.console.prewatch(ctx, info.ID)
	switch err := c.sendAdmitted(ctx, info, said); {
	case errors.Is(err, engine.ErrKept):
		return err
	case errors.Is(err, engine.ErrWaiting):
		return fmt.Errorf("the conversation waits for an answer, and accepts no message until then: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("a turn is running, and the message was not sent: send it again, or cancel the turn first: %w", err)
	case errors.Is(err, engine.ErrBusy) && !errors.Is(err, engine.ErrClosed):
		return fmt.Errorf("calls of the turn before have no result: cancel that turn, and then send the message again: %w", err)
	default:
		return err
	}
}

// sendAdmitted sends a message to an existing conversation if Options.Admit lets it enter.
func (c conversationPages) sendAdmitted(ctx context.Context, info history.Info, said canister.User) error {
	return admit(ctx, c.console, httpapi.Entry{Conversation: info.ID, Canister: said}, func(ctx context.Context) error {
		return c.console.Engine.Send(engine.MustExist(ctx), info.ID, said)
	})
}

// cancel ends the turn of a page that has shown a number of canisters, unless a message has begun another one.
func (c conversationPages) cancel(ctx context.Context, info history.Info, shown string) error {
	length, err := strconv.Atoi(shown)
	if err != nil || length < 1 {
		return errors.New("nothing was cancelled, because the form does not say which turn it is about: load the page again")
	}
	for one, err := range c.console.Store.Read(ctx, info.ID, length) {
		switch {
		case err != nil:
			return err
		case one.Kind() == canister.KindUser:
			return errors.New("nothing was cancelled: the turn of the page is over, and a message has begun another one")
		}
	}
	return c.console.Engine.Cancel(ctx, info.ID)
}

// resume makes the engine check a conversation: it sends the last message again, which is not stored twice.
func (c conversationPages) resume(ctx context.Context, info history.Info) error {
	if c.console.Active != nil && c.console.Active(info.ID) {
		return nil
	}
	_, end, err := engine.LastTurn(ctx, c.console.Store, info.ID, c.console.Now())
	for _, one := range slices.Backward(end) {
		if last, ok := one.(canister.User); ok {
			c.console.prewatch(ctx, info.ID)
			return c.sendAdmitted(ctx, info, last)
		}
	}
	return cmp.Or(err, errors.New("the conversation has no message that could be answered"))
}

// fork copies a conversation up to a canister, and returns the path of the copy.
func (c conversationPages) fork(ctx context.Context, info history.Info, at string) (path string, err error) {
	length, err := strconv.Atoi(at)
	if err != nil || length < 1 || length > info.Length {
		return conversationPath(info.ID), fmt.Errorf("a fork begins after one of the canisters 1 to %d", info.Length)
	}
	name := histories.NewID()
	if err := c.console.Store.Fork(ctx, info.ID, length, name); err != nil {
		return conversationPath(info.ID), err
	}
	return conversationPath(name), nil
}

// admit calls enter if Options.Admit lets a message or an answer enter.
func admit(ctx context.Context, c *Console, entry httpapi.Entry, enter func(context.Context) error) error {
	if c.Admit == nil {
		return enter(ctx)
	}
	return c.Admit(ctx, entry, enter)
}
