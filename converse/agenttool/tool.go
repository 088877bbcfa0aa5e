// SPDX-License-Identifier: Apache-2.0

package agenttool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/internal/conversetool"
	"github.com/consort-go/consort/internal/progress"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// The defaults of [Options].
const (
	defaultKept = 64
	defaultIdle = 30 * time.Minute
)

// Options configure a [Tool]. Nil, and the zero value of each field, mean the default
// that the field names.
type Options struct {
	// Name is the name of the tool; default "converse".
	Name string
	// Title is a name for people.
	Title string
	// Description tells callers how the conversations can help them. The default
	// describes how to use the tool.
	Description string
	// Needs are trusted values without which the tool cannot be called.
	Needs []invoker.Need
	// Identity names the trusted values that a conversation is bound to: a caller with
	// other values, or without one of them, does not find it. The default is all values
	// of the first call. Name the values that identify the caller if others, such as
	// renewed tokens, change from call to call.
	Identity []string
	// Kept is the maximum number of conversations, idle or at work. To make room, an
	// idle conversation ends: of the identity with the most conversations, the one that
	// has been idle for the longest time. Default 64.
	Kept int
	// Each is the maximum number of conversations of one identity, so that no caller
	// takes all; callers without trusted values are one identity. Default half of Kept,
	// rounded up.
	Each int
	// Idle is how long a conversation is kept after its last turn; default 30 minutes.
	Idle time.Duration
	// Logger logs why conversations could not be closed; nil logs nothing.
	Logger *zap.Logger
}

// Tool is an invoker that holds conversations: each call is one turn of one of them.
// Use it to offer an agent to other agents, over MCP or as a tool of another
// conversation. Its methods may be called concurrently.
type Tool struct {
	tool invoker.Invoker
	open converse.OpenFunc
	opts Options
	kept sessions
}

// description is the default of [Options.Description].
const description = conversetool.Description +
	"If the reason is waiting, call with the conversation and no message to continue; a message cancels what the conversation waits for."

// New returns a tool that holds conversations made by open. Opts may be nil. The tool
// takes a message and, to continue a conversation, its ID. It returns that
// ID, the answer and the [converse.Reason] for which the turn ended. While it
// works it reports progress, with the text of the model as [invoker.Progress].Partial,
// and at least every 5 seconds that it is at work. A conversation that waits for an
// answer ([converse.ReasonWaiting]) goes on with a call that has no message. In
// addition to the failures of every tool, a call fails with
//
//   - NOT_FOUND: the conversation does not exist, belongs to another caller, has ended,
//     or was deleted.
//   - CONFLICT: the conversation is used by another call, which is retryable; or
//     another program has gone on with it, in the log, before this call was answered.
//   - UNAVAILABLE, retryable: all conversations that may be kept, or all of one user,
//     are in a turn, or the model cannot be reached. A conversation that exists
//     is kept.
//   - CANCELED: the tool was closed.
//
// New fails if open is nil, a need has no name, or a number is negative.
func New(open converse.OpenFunc, opts *Options) (*Tool, error) {
	if open == nil {
		return nil, errors.New("agenttool: New needs a function that opens conversations")
	}
	t := &Tool{open: open}
	if opts != nil {
		t.opts = *opts
		t.opts.Identity = slices.Clone(opts.Identity)
	}
	if t.opts.Kept < 0 || t.opts.Each < 0 || t.opts.Idle < 0 {
		return nil, fmt.Errorf("agenttool: New does not accept negative numbers: Kept %d, Each %d, Idle %v", t.opts.Kept, t.opts.Each, t.opts.Idle)
	}
	t.opts.Name = cmp.Or(t.opts.Name, conversetool.Name)
	t.opts.Description = cmp.Or(t.opts.Description, description)
	t.opts.Kept = cmp.Or(t.opts.Kept, defaultKept)
	t.opts.Each = cmp.Or(t.opts.Each, (t.opts.Kept+1)/2)
	t.opts.Idle = cmp.Or(t.opts.Idle, defaultIdle)
	if t.opts.Logger == nil {
		t.opts.Logger = zap.NewNop()
	}
	t.kept = sessions{most: t.opts.Kept, each: t.opts.Each, idle: t.opts.Idle, logger: t.opts.Logger, talks: map[string]*session{}}
	tool, err := invoker.New(t.opts.Name, t.opts.Description, t.say, &invoker.Options{Title: t.opts.Title, Needs: t.opts.Needs})
	if err != nil {
		return nil, fmt.Errorf("agenttool: %w", err)
	}
	t.tool = tool
	return t, nil
}

// Definition implements [invoker.Invoker].
func (t *Tool) Definition() *invoker.Definition { return t.tool.Definition() }

// Invoke implements [invoker.Invoker].
func (t *Tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	return t.tool.Invoke(ctx, call)
}

// Close ends all conversations, including those at work, and waits for them. If ctx
// ends first, it returns the error of ctx. Calls fail from then on.
func (t *Tool) Close(ctx context.Context) error { return t.kept.close(ctx) }

// say handles one call of the tool.
func (t *Tool) say(ctx context.Context, m conversetool.Message) (answer conversetool.Reply, err error) {
	who, err := owner.Of(ctx, t.opts.Identity)
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held, err := t.take(ctx, cancel, who, m.Conversation)
	if err != nil {
		return answer, err
	}
	defer t.kept.give(held)
	turn, err := t.turn(ctx, held, m.Message)
	if err != nil {
		return answer, t.failed(ctx, held, err)
	}
	return conversetool.Reply{Conversation: held.id, Answer: turn.Text(), Reason: turn.Reason}, nil
}

// take claims a conversation for a turn: the one with the given ID, or a new one
// if id is empty.
func (t *Tool) take(ctx context.Context, cancel context.CancelCauseFunc, who owner.ID, id string) (*session, error) {
	if id != "" {
		return t.kept.take(id, who, cancel)
	}
	held, err := t.kept.make(rand.Text(), who, cancel)
	if err != nil {
		return nil, err
	}
	opened := false
	defer func() {
		if !opened {
			t.kept.drop(held)
		}
	}()
	conversation, err := t.open(ctx, held.id)
	if err == nil && conversation == nil {
		err = errors.New("the function that opens conversations returned nil")
	}
	if err != nil {
		return nil, fmt.Errorf("opening a conversation: %w", err)
	}
	held.conversation, opened = conversation, true
	return held, nil
}

// turn runs one turn, or continues one if text is empty, and reports its progress.
func (t *Tool) turn(ctx context.Context, held *session, text string) (converse.Turn, error) {
	to := conversetool.Begin(invoker.CallFrom(ctx))
	defer to.End()
	events := held.conversation.Continue(ctx)
	if text != "" {
		events = held.conversation.Send(ctx, canister.Text(text))
	}
	for event, err := range events {
		if err != nil {
			return converse.Turn{}, err
		}
		report(to, event)
		if done, ok := event.(converse.TurnCompleted); ok {
			return done.Turn, nil
		}
	}
	return converse.Turn{}, errors.New("the turn ended without a result")
}

// stillOpen says how to continue a conversation after a failure.
const stillOpen = "The conversation %q is still open: call again with it and without a message."

// failed returns the error of a call whose turn failed.
func (t *Tool) failed(ctx context.Context, held *session, err error) error {
	var model *converse.ModelError
	conflict, overtaken := errors.AsType[*history.ConflictError](err)
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errToolClosed):
		return &invoker.Failure{Code: invoker.Canceled, Message: "The conversation was interrupted because it is being shut down.", Cause: err}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, converse.ErrBusy):
		return busy()
	case errors.Is(err, converse.ErrClosed):
		return noConversation(held.id)
	case overtaken && conflict.Length == 0:
		return noConversation(held.id)
	case overtaken:
		failure := invoker.Failf(invoker.Conflict, "Another program continued the conversation %q before the message was answered. "+
			"Call again with this conversation; without a message, the call returns the answer to the last message.", held.id)
		failure.Cause = err
		return failure
	case errors.As(err, &model) && model.Retryable:
		failure := invoker.Failf(invoker.Unavailable, "The assistant's model cannot be reached. "+stillOpen, held.id)
		failure.Cause = err
		return failure
	}
	return &invoker.Failure{Code: invoker.ExecutionFailed, Message: fmt.Sprintf("The assistant failed. "+stillOpen, held.id), Cause: err}
}

// report reports an event of a turn as progress.
func report(to *conversetool.Progress, event converse.Event) {
	switch e := event.(type) {
	case converse.TextDelta:
		to.Text(e.Text)
	case converse.MessageStarted:
		to.Report("asking the model")
	case converse.MessageCompleted:
		to.Report("")
	case converse.ExchangeRetried:
		to.Report("the model did not answer, trying again")
	case converse.ExchangeMoved:
		to.Report("the model did not answer, asking another one")
	case converse.InvocationStarted:
		to.Report("calling " + textcut.Bytes(e.Invocation.Name, 200))
	case converse.InvocationProgressed:
		to.Report(progress.Of(textcut.Bytes(e.Invocation.Name, 200), e.Progress))
	case converse.InvocationCompleted:
		to.Report(textcut.Bytes(e.Invocation.Name, 200) + " " + cmp.Or(e.Result.Code, "returned"))
	}
}
