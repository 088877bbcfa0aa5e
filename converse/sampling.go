// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/sample"
	"github.com/consort-go/consort/converse/internal/toolchoice"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// allowance is the part of the limits that is left for the tools of a batch.
type allowance struct {
	limits Limits

	mu        sync.Mutex
	exchanges int // of the turn so far
	usage     canister.Usage
	reserved  int64         // tokens of the answers under way
	settled   chan struct{} // closed when one of them is over; nil if nothing waits
}

// take reserves one exchange for an answer of up to asked tokens, 0 for any number, and
// returns how many it may have. It returns the limit that is reached, if one is. If the
// exchanges under way may use up all that is left, it returns a channel that is closed
// when one of them is over.
func (b *allowance) take(asked int64) (most int64, reached Reason, wait <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reached := b.limits.reached(b.exchanges, b.usage); reached != "" {
		return 0, reached, nil
	}
	if b.limits.Tokens > 0 {
		left := b.limits.Tokens - b.usage.Total() - b.reserved
		if left <= 0 {
			if b.settled == nil {
				b.settled = make(chan struct{})
			}
			return 0, "", b.settled
		}
		asked = min(cmp.Or(asked, left), left)
		b.reserved += asked
	}
	b.exchanges++
	return asked, "", nil
}

// settle replaces the reservation of an exchange by its real usage.
func (b *allowance) settle(most int64, usage canister.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage = b.usage.Add(usage)
	if b.limits.Tokens > 0 {
		b.reserved -= most
	}
	if b.settled != nil {
		close(b.settled)
		b.settled = nil
	}
}

// sampling handles the exchanges with the model that one call asks for.
type sampling struct {
	batch *batch
	opts  *Options        // of the conversation
	ctx   context.Context // of the call, which the tool calls back from
	key   string          // of the call, the same for each attempt
	said  sample.Translator

	mu    sync.Mutex
	over  bool // the call is over
	spent calls.Sampled
}

// begin begins the exchanges of the call with a key; ctx is the context of the call.
func (s *sampling) begin(ctx context.Context, b *batch, key string) {
	s.batch, s.opts, s.ctx, s.key = b, b.opts, ctx, key
	s.said.Clean, s.said.Head = b.clean, b.head
}

// head returns the head of a new canister.
func (b *batch) head() canister.Head {
	return canister.Head{ID: b.opts.NewID(), Time: b.opts.Now()}
}

// ask is [invoker.Call].Model: one exchange, with its own history and without the tools
// of the conversation.
func (s *sampling) ask(ctx context.Context, request *invoker.SampleRequest) (_ *invoker.SampleResult, err error) {
	defer foreign.Caught("a function that a tool's question to the model needs", &err)
	history, err := s.said.History(request)
	if err != nil {
		return nil, err
	}
	set, names, err := s.tools(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := foreign.During(ctx, s.ctx)
	defer cancel()
	most, number, err := s.take(ctx, request.MaxTokens)
	if err != nil {
		return nil, err
	}
	var usage canister.Usage
	defer func() { s.settle(most, usage) }()
	reply, err := s.exchange(ctx, fmt.Sprintf("question %d of %s", number, s.key), s.request(request, history, set, most))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, cannotAsk(err)
	}
	if reply.Message.Usage != nil {
		usage = *reply.Message.Usage
	}
	return s.said.Result(reply.Message, reply.Invocations, names)
}

// request returns the request to the model, for an answer of at most that many tokens.
func (s *sampling) request(asked *invoker.SampleRequest, history []canister.Canister, tools *Toolset, most int64) *Request {
	request := &Request{
		Purpose: PurposeSampling, History: history, Tools: tools, MaxTokens: most, NewID: s.opts.NewID,
		NoInvocations:     asked.ToolChoice == invoker.ToolsNone,
		RequireInvocation: asked.ToolChoice == invoker.ToolsRequired,
	}
	if asked.Temperature != nil {
		request.Temperature = new(*asked.Temperature)
	}
	for _, text := range asked.Stop {
		request.Stop = append(request.Stop, s.batch.clean.Text(text))
	}
	return request
}

// take reserves one exchange of the turn, and returns how many tokens its answer may
// have, and its number in the call. It waits for other exchanges if these may use up all that is left.
func (s *sampling) take(ctx context.Context, asked int64) (most int64, number int, err error) {
	for {
		most, number, wait, err := s.tryTake(asked)
		if wait == nil {
			return most, number, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
}

func (s *sampling) tryTake(asked int64) (most int64, number int, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, 0, nil, invoker.Failf(invoker.Canceled, "The model was not asked: the call is over.")
	}
	var reached Reason
	most, reached, wait = s.batch.budget.take(asked)
	switch limits := s.opts.Limits; {
	case reached == ReasonExchanges:
		return 0, 0, nil, invoker.Failf(invoker.Denied, "The model was not asked: the turn has reached its limit of %d exchanges.", limits.Exchanges)
	case reached == ReasonTokens:
		return 0, 0, nil, invoker.Failf(invoker.Denied, "The model was not asked: the turn has reached its limit of %d tokens.", limits.Tokens)
	case wait == nil:
		s.spent.Exchanges++
	}
	return most, s.spent.Exchanges, wait, nil
}

func (s *sampling) settle(most int64, usage canister.Usage) {
	s.batch.budget.settle(most, usage)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.spent.Usage = s.spent.Usage.Add(usage)
	}
}

// end closes the account of the call and returns its total.
func (s *sampling) end() calls.Sampled {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.spent
}

// exchange asks the model. If the model refuses a request that has a temperature or
// stop sequences, it asks again without them: some models support neither, and a client
// may ignore them (MCP 2025-11-25, client/sampling). It does not if the model's server has
// run a tool already.
func (s *sampling) exchange(ctx context.Context, work string, request *Request) (*Reply, error) {
	reply, err := s.attempt(ctx, work, request)
	var failed *ModelError
	if !errors.As(err, &failed) || failed.Ran != "" || failed.Status != 400 && failed.Status != 422 || request.Temperature == nil && request.Stop == nil {
		return reply, err
	}
	plain := *request
	plain.Temperature, plain.Stop = nil, nil
	return s.attempt(ctx, work, &plain)
}

// attempt asks the model as it was passed to New, because the model that is bound to
// the conversation expects another history.
func (s *sampling) attempt(ctx context.Context, work string, request *Request) (*Reply, error) {
	return s.batch.turn.asker.aside(ctx, work, s.batch.turn.conv.origin, s.batch.turn.conv.info, request, func(ModelEvent) {})
}

// cannotAsk returns the failure that a tool receives for a failed exchange.
func cannotAsk(err error) *invoker.Failure {
	var failed *ModelError
	if reached := new(budget.ReachedError); errors.As(err, &reached) {
		return invoker.Failf(invoker.Denied, "The model was not asked: %v.", reached)
	}
	if errors.As(err, &failed) && failed.Retryable {
		return invoker.Failf(invoker.Unavailable, "The model cannot be reached: %w", err)
	}
	return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The model could not answer.", Cause: fmt.Errorf("asking the model: %w", err)}
}

// tools returns the tools of a request, and their names if the model may call them; the
// conversation does not run them. It returns an error if the model cannot be offered one
// of them. None is left out, because the requester would not notice.
func (s *sampling) tools(request *invoker.SampleRequest) (*Toolset, sample.Names, error) {
	choice := toolchoice.For(s.batch.turn.conv.origin, s.opts.Limits.Tools)
	if err := choice.Place(len(request.Tools) - 1); err != nil {
		return nil, nil, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered %d tools: %w.", len(request.Tools), err)
	}
	set, names := &Toolset{}, sample.Names{}
	for _, tool := range request.Tools {
		definition, err := names.Define(tool, s.batch.clean)
		if err != nil {
			return nil, nil, err
		}
		if err := choice.Screen(definition); err != nil {
			return nil, nil, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered the tool %q: %w.", textcut.Bytes(tool.Name, bounds.MaxQuoted), err)
		}
		set.Definitions = append(set.Definitions, definition)
	}
	slices.SortFunc(set.Definitions, func(a, b *invoker.Definition) int { return strings.Compare(a.Name, b.Name) })
	if request.ToolChoice == invoker.ToolsNone {
		names = nil
	}
	return set, names, nil
}
