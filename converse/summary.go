// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/tokenestimate"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// compact shortens later requests by one document in the history. It reports whether a
// request for a summary was too long, and the next compaction makes it shorter.
func (t *turn) compact(ctx context.Context, command Compact) (again bool) {
	started := t.opts.Now()
	options := t.opts.Compaction.options(t.policy().Refused)
	document := canister.Document{Title: "Shortened tool results", Content: canister.Texts(fmt.Sprintf(
		"[Tool results before this point are cut to %d bytes each.]", command.Trim))}
	var usage *canister.Usage
	if command.Trim == 0 {
		request := t.asker.summaryRequest(options, command)
		reply, spent, err := t.summarize(ctx, command, request)
		if err != nil {
			if again = t.tooLong(err, &t.conv.refusedPart, compaction.RequestTokens(request.History)); !again {
				t.failExchange(ctx, advise(err, adviceForSummary))
			}
			return again
		}
		document, usage = t.asker.summaryOf(reply, spent, command), reply.Message.Usage
		command.After = command.Before - command.plan.Hidden + compaction.TokensOf(document)
	}
	document.ID, document.Time = t.opts.NewID(), t.opts.Now()
	document.Metadata = compaction.MarkedBy(t.conv.held.Mark(t.conv.history, &command.plan, command.After), document.Metadata)
	if !t.append(document) {
		return false
	}
	logevent.Log(ctx, t.guard.log, zapcore.InfoLevel, "older parts of the conversation were shortened for the model", logevent.Compacted,
		zap.Int64("before", command.Before), zap.Int64("after", command.After), zap.Int("trimmed", command.Trim))
	t.emit(CompactionCompleted{
		Document: document,
		From:     t.conv.history[command.plan.From()].Header().ID, To: command.Through,
		Trimmed: command.Trim,
		Before:  command.Before, After: command.After,
		Usage: usage, Duration: t.opts.since(started),
	})
	return false
}

// summarize asks the model of the compaction, or of the conversation, for a summary. A model whose
// reasoning has reached the limit of the summary is asked again, once, with a higher limit; if that
// fails, the first answer counts. The reply has the usage of all exchanges.
func (t *turn) summarize(ctx context.Context, command Compact, request *Request) (reply *Reply, spent calls.Sampled, err error) {
	model, info := t.conv.origin, t.conv.info
	if t.opts.Compaction.Model != nil {
		model = t.opts.Compaction.Model
		if info, err = describe(model); err != nil {
			return nil, spent, err
		}
	}
	window := least(t.opts.Compaction.Window, t.policy().Refused)
	for limit := request.MaxTokens; limit > 0; limit = compaction.LongerSummary(&reply.Message, request.MaxTokens, limit, window, info.MaxTokens, request.History) {
		asked := *request
		asked.MaxTokens = limit
		answer, err := t.asker.aside(ctx, "summary through "+command.Through, model, info, &asked, t.emitAttempt)
		if err != nil && (reply == nil || ctx.Err() != nil || compaction.SummaryFault(&reply.Message, request.MaxTokens, info.MaxTokens) != "" && !isTooLong(err)) {
			return nil, spent, err
		}
		if err != nil {
			break // the first answer counts
		}
		spent.Exchanges++
		if usage := answer.Message.Usage; usage != nil {
			spent.Usage = spent.Usage.Add(*usage)
		}
		if reply == nil || compaction.SummaryFault(&answer.Message, request.MaxTokens, info.MaxTokens) == "" {
			reply = answer
		}
	}
	if spent.Usage != (canister.Usage{}) {
		reply.Message.Usage = &spent.Usage
	}
	if fault := compaction.SummaryFault(&reply.Message, request.MaxTokens, info.MaxTokens); fault != "" {
		return nil, spent, &ModelError{Message: "the model was asked to summarise the older part of the conversation, but " + fault}
	}
	return reply, spent, nil
}

// summaryRequest returns the request for a summary: without tools, and with only the
// part of the history to summarise.
func (a *asker) summaryRequest(options compaction.Options, command Compact) *Request {
	most := int(min(command.plan.Part, 1<<30)) * tokenestimate.BytesPerToken
	head := func() canister.Head { return canister.Head{ID: a.opts.NewID(), Time: a.opts.Now()} }
	return &Request{
		Purpose: PurposeSummary,
		History: []canister.Canister{
			canister.Supervisor{Head: head(), Content: canister.Texts(options.Instructions(a.opts.Compaction.Instructions))},
			canister.User{Head: head(), Content: canister.Texts(compaction.Digest(command.plan.Told(a.conv.history), options.DigestTrim(), most))},
		},
		Tools:         &Toolset{},
		NoInvocations: true,
		MaxTokens:     options.MaxTokens,
		NewID:         a.opts.NewID,
	}
}

// summaryOf builds the document that replaces the summarised part. It is always shorter
// than that part.
func (a *asker) summaryOf(reply *Reply, spent calls.Sampled, command Compact) canister.Document {
	text := strings.TrimSpace(canister.TextOf(reply.Message.Content))
	if reply.Message.Finish == canister.FinishLength {
		text += " [The summary was cut off here.]"
	}
	text = compaction.Shortened(a.guard.clean.Text(text), int(max(command.plan.Hidden, 100)*tokenestimate.BytesPerToken/2))
	return canister.Document{
		Head:    canister.Head{Extra: canister.Extra{Metadata: spent.Remember(nil)}},
		Title:   "Summary that replaces the older part of the conversation",
		Content: canister.Texts(text),
	}
}

// maxRefusals bounds how often a piece of work retries requests that the model refuses
// as too long.
const maxRefusals = 8

// tooLong records the size of a request that the model has refused as too long, and
// reports whether the next step makes it shorter.
func (t *turn) tooLong(err error, refused *int64, size int64) bool {
	if !isTooLong(err) || t.opts.Compaction == nil {
		return false
	}
	t.conv.mu.Lock()
	*refused = least(*refused, size)
	t.conv.mu.Unlock()
	t.refusals++
	_, shorter := t.next().(Compact)
	if t.summarizes {
		_, shorter = t.policy().summary(t.conv.history)
	}
	return shorter && t.refusals <= maxRefusals
}

func isTooLong(err error) bool {
	failed, ok := errors.AsType[*ModelError](err)
	return ok && failed.Code == CodeContextLength && failed.Ran == "" // nothing that has run is asked for again
}

// The advice about a request that is too long.
const (
	adviceWithoutCompaction = " [the conversation is too long for the model: set Options.Compaction, which is the table [compaction] in a configuration, use a model with a larger window, or start another conversation]"
	adviceCompacted         = " [the older part has already been left out, but the rest, the instructions and the offered tools are still too long; use a model with a larger window, offer fewer tools, or start another conversation]"
	adviceForSummary        = " [the request for a summary of the older part is too long for the model that writes it, and cannot be made short enough: set Compaction.Model, which is compaction.model in a configuration, to a model with a larger window, or start another conversation]"
)

// advised adds advice to an error of an exchange that was too long.
func advised(opts *Options, err error) error {
	if opts.Compaction == nil {
		return advise(err, adviceWithoutCompaction)
	}
	return advise(err, adviceCompacted)
}

// advise adds advice to an error that reports a request that is too long.
func advise(err error, advice string) error {
	if !isTooLong(err) {
		return err
	}
	failed, _ := errors.AsType[*ModelError](err)
	told := *failed
	told.Message += advice
	return &told
}
