// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/conversetool"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/progress"
	"github.com/consort-go/consort/internal/turncancel"
	"github.com/consort-go/consort/invoker"
)

// conversations is the tool converse on top of an engine. Each conversation is stored and
// belongs to the caller that began it. If that caller goes, the turn of its call is
// cancelled, and the conversation can be continued.
type conversations struct {
	engine engine.Engine
	feed   *httpapi.Feed // of the engine; other readers get the text of the turn too
	store  histories.ClientsOnly
	open   converse.OpenFunc
	owner  func(context.Context) (string, error)
	// withSender returns a context whose messages record that the caller sent them.
	withSender func(context.Context) (context.Context, error)
	// ending ends when the process shuts down. Turns are then left for later; otherwise
	// they are cancelled together with their call.
	ending context.Context
}

// reply is the output of the tool.
type reply struct {
	conversetool.Reply
	Waits []waiting `json:"waits,omitempty" jsonschema:"the open waits, if the reason is waiting"`
}

// waiting describes a wait of the turn, as far as the caller may know.
type waiting struct {
	For      string    `json:"for" jsonschema:"approval, outcome, elicitation or timer"`
	Tool     string    `json:"tool,omitempty"`
	Deadline time.Time `json:"deadline"`
}

func (c *conversations) tool() (invoker.Invoker, error) {
	return invoker.New(conversetool.Name, conversetool.Description+"Conversations are stored and do not expire with the connection.", c.call, nil)
}

// call handles one call of the tool.
func (c *conversations) call(ctx context.Context, m conversetool.Message) (reply, error) {
	known, err := c.owner(ctx)
	if err == nil {
		err = m.Check()
	}
	if err == nil {
		ctx, err = c.withSender(ctx)
	}
	if err != nil {
		return reply{}, err
	}
	owner := c.store.Owner(known)
	turn := &servedTurn{tool: c, id: m.Conversation, report: conversetool.Begin(invoker.CallFrom(ctx)), waitsOnly: m.Message == ""}
	defer turn.report.End()
	if m.Conversation == "" {
		err = turn.begin(ctx, owner, m.Message)
	} else {
		err = turn.continueWith(ctx, owner, m.Message)
	}
	if err != nil {
		return reply{}, turn.failed(ctx, err)
	}
	ended, err := turn.follow(ctx)
	if err != nil {
		return reply{}, turn.failed(ctx, err)
	}
	return reply{conversetool.Reply{Conversation: turn.id, Answer: turn.answer, Reason: ended.Reason}, turn.waits(ended)}, nil
}

// servedTurn is one turn of a conversation, for one call of the tool.
type servedTurn struct {
	tool   *conversations
	report *conversetool.Progress
	id     string // of the conversation
	turn   string // ID of the first message of the turn
	after  int    // number of canisters before the turn
	sent   bool   // this call sent the message, and the log has it
	// waitsOnly is set if the call sends no message and only waits for an answer.
	waitsOnly bool

	canisters []canister.Canister // of the turn
	answer    string
}

// begin creates a conversation and sets its owner before any work on it starts.
func (t *servedTurn) begin(ctx context.Context, owner, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// A caller that goes must not stop this halfway: a message that is in the log needs an owner and a turn.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTimeout)
	defer cancel()
	t.id, t.turn = rand.Text(), rand.Text()
	message := canister.User{Head: canister.Head{ID: t.turn, Time: time.Now()}, Content: canister.Texts(text)}
	err := engine.Post(ctx, t.tool.store, t.tool.open, t.id, message, time.Now())
	if err == nil {
		title := histories.TitleOf(message)
		err = t.tool.store.Describe(ctx, t.id, history.Change{Owner: &owner, Title: &title})
	}
	if err != nil {
		t.turn = "" // a conversation without an owner is not continued and need not be looked for
		return err
	}
	t.sent = true
	return t.tool.engine.Send(ctx, t.id, message)
}

// continueWith sends a message to a conversation of owner. With an empty text it finds the last
// message instead.
func (t *servedTurn) continueWith(ctx context.Context, owner, text string) error {
	info, err := t.tool.store.Info(ctx, t.id)
	if history.CheckID(t.id) != nil || errors.Is(err, history.ErrNotFound) || err == nil && info.Owner != owner {
		return &invoker.Failure{Code: invoker.NotFound, Message: "There is no such conversation. Omit it to start a new one.", Pointer: "/conversation"}
	}
	if err != nil {
		return err
	}
	if text == "" {
		last, position, err := lastMessage(ctx, t.tool.store, t.id)
		t.turn, t.after = last.ID, position-1
		if err == nil && info.Last != canister.KindAssistant {
			_ = t.tool.recheck(ctx, t.id, last) // the process of its turn may have died; if this fails, the turn continues later
		}
		return err
	}
	t.after, t.turn = info.Length, rand.Text()
	err = t.tool.engine.Send(engine.MustExist(ctx), t.id, canister.User{Head: canister.Head{ID: t.turn, Time: time.Now()}, Content: canister.Texts(text)})
	t.sent = err == nil || errors.Is(err, engine.ErrKept)
	return err
}

// lastMessage returns the last message of the user and its position in the log.
func lastMessage(ctx context.Context, store history.Log, id string) (last canister.User, position int, err error) {
	before, canisters, err := engine.LastTurn(ctx, store, id, time.Now())
	if err != nil {
		return last, 0, err
	}
	for i, c := range slices.Backward(canisters) {
		if user, ok := c.(canister.User); ok {
			return user, before + i + 1, nil
		}
	}
	return last, 0, invoker.Failf(invoker.NotFound, "The conversation has no message yet.")
}

// follow reports progress until the turn ends.
func (t *servedTurn) follow(ctx context.Context) (engine.Ended, error) {
	// The conversation has a canister by now: without one it has been deleted.
	for happened, err := range t.events(ctx, max(t.after, 1)) {
		if err != nil {
			return engine.Ended{}, err
		}
		switch e := happened.(type) {
		case engine.Added:
			t.add(e.Canister)
		case engine.Delta:
			t.delta(e)
		case engine.Ended:
			switch {
			case e.Turn != t.turn:
				continue
			case e.Superseded != "" && t.onlyUser():
				t.turn = e.Superseded // that turn answers both messages
				continue
			case e.Superseded != "":
				return e, errSuperseded
			}
			if t.report.Report(""); e.Error == "" {
				return e, nil
			}
			if e.Again.IsZero() {
				return e, errFailed
			}
			t.report.Report("the turn failed and will be retried")
		}
	}
	return engine.Ended{}, engine.ErrClosed
}

// events yields the events after a position. A call without a new message watches the engine,
// which says how the turn stands now: the feed also repeats that the turn waited, although a
// person has answered since.
func (t *servedTurn) events(ctx context.Context, after int) iter.Seq2[engine.Event, error] {
	if t.waitsOnly {
		return t.tool.engine.Watch(ctx, t.id, after)
	}
	return func(yield func(engine.Event, error) bool) {
		for event, err := range t.tool.feed.Events(ctx, t.id, httpapi.Cursor{Position: after}) {
			if !yield(event.Event, err) {
				return
			}
		}
	}
}

// errFailed says that a turn failed. The reason was logged.
var errFailed = errors.New("the turn has failed")

// errSuperseded says that another process continued the conversation.
var errSuperseded = errors.New("another process continued the conversation")

// onlyUser reports whether the turn has only user messages so far.
func (t *servedTurn) onlyUser() bool {
	return !slices.ContainsFunc(t.canisters, func(c canister.Canister) bool { return c.Kind() != canister.KindUser })
}

func (t *servedTurn) add(c canister.Canister) {
	switch c := c.(type) {
	case canister.User:
		if c.ID != t.turn {
			return
		}
		if !t.onlyUser() {
			t.canisters, t.answer = nil, ""
		}
	case canister.Assistant:
		t.answer = canister.TextOf(c.Content)
	case canister.Result:
		t.report.Report("a tool " + cmp.Or(c.Code, "returned"))
	}
	t.canisters = append(t.canisters, c)
}

func (t *servedTurn) delta(d engine.Delta) {
	if d.Turn != t.turn {
		return
	}
	if text := d.Text(); text != "" {
		t.report.Text(text)
	} else if tool, reported, ok := d.Progress(); ok {
		t.report.Report(progress.Of(tool, reported))
	}
}

// waits returns the waits of the turn.
func (t *servedTurn) waits(ended engine.Ended) []waiting {
	var all []waiting
	if ended.Reason != converse.ReasonWaiting {
		return nil
	}
	for _, wait := range histories.WaitsOf(waits.Open(t.id, t.canisters, time.Now()), t.canisters) {
		all = append(all, waiting{wait.For, wait.Tool, wait.Deadline})
	}
	return all
}

// failed returns the error to report for a failed turn. If the caller has gone, it
// cancels the turn that this call began, unless the process is shutting down: then the
// next process continues it.
func (t *servedTurn) failed(ctx context.Context, err error) error {
	known := new(invoker.Failure)
	switch {
	case ctx.Err() != nil && t.tool.ending.Err() == nil:
		if t.sent {
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), turncancel.Limit)
			defer cancel()
			err = errors.Join(ctx.Err(), t.tool.engine.Cancel(bounded, t.id))
		}
		return err
	case ctx.Err() != nil, errors.Is(err, engine.ErrClosed):
		return &invoker.Failure{Code: invoker.Canceled, Message: t.andStored("The program is shutting down."), Cause: err}
	case errors.As(err, &known):
		return err
	case errors.Is(err, engine.ErrWaiting):
		return &invoker.Failure{Code: invoker.Conflict, Message: "The conversation waits for an answer of a person, and accepts no message until then.", Cause: err}
	case errors.Is(err, engine.ErrBusy):
		return &invoker.Failure{Code: invoker.Conflict, Message: "The turn before has failed, with calls that have no result, and the conversation accepts no message until a person cancels that turn.", Cause: err}
	case errors.Is(err, errSuperseded):
		return &invoker.Failure{Code: invoker.Conflict, Cause: err, Message: t.andStored("Another program continued the conversation before the message was answered.") +
			" To get the answer to the last message, call again with this conversation and without a message."}
	case errors.Is(err, history.ErrNotFound):
		return &invoker.Failure{Code: invoker.NotFound, Cause: err, Pointer: "/conversation",
			Message: "The conversation was deleted before the message was answered. Omit it to start a new one."}
	case errors.Is(err, errFailed):
		return &invoker.Failure{Code: invoker.ExecutionFailed, Message: t.andStored("The assistant failed."), Cause: err}
	}
	return t.unreachable(ctx, err)
}

// unreachable returns the error for an unreachable engine or store. It says whether the
// message arrived and what to do. The caller may repeat the message only if it has not arrived.
func (t *servedTurn) unreachable(ctx context.Context, cause error) error {
	failure := &invoker.Failure{Code: invoker.Unavailable, Cause: cause}
	const advice = " To get the answer, call again with this conversation and without a message."
	arrived, err := t.arrived(ctx)
	switch {
	case arrived:
		failure.Message = t.andStored("The message has arrived and will be answered, but the engine of the conversations cannot be reached at the moment.") + advice
	case t.waitsOnly:
		failure.Message, failure.Retryable = t.andStored("The answer is not available at the moment.")+advice, true
	case err != nil:
		failure.Message = t.andStored("It is not known at the moment whether the message has arrived.") + " To find out, call again later with this conversation and without a message."
	default:
		failure.Message, failure.Retryable = "The message has not arrived, because the conversations cannot be reached at the moment. Send it again later.", true
	}
	return failure
}

// arrived reports whether the log contains the message of this call.
func (t *servedTurn) arrived(ctx context.Context) (bool, error) {
	if t.sent || t.waitsOnly || t.turn == "" {
		return t.sent, nil
	}
	for c, err := range t.tool.store.Read(ctx, t.id, t.after) {
		if err != nil || c.Header().ID == t.turn {
			return err == nil, err
		}
	}
	return false, nil
}

// andStored appends to a text that the conversation is stored, if there is one.
func (t *servedTurn) andStored(text string) string {
	if t.id == "" {
		return text
	}
	form, _ := json.Marshal(t.id) // marshaling a string never fails
	return text + " The conversation " + string(form) + " is stored."
}
