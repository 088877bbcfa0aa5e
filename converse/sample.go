// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// sampledKey is the member of a result's metadata that says what the tool has
// spent of the model. It is ours alone: what a tool writes there is dropped.
const sampledKey = "io.github.consort-go/sampled"

// sampled is what a tool has spent of the model.
type sampled struct {
	Exchanges int `json:"exchanges"`
	usageForm
}

// remember returns metadata that says so.
func (s sampled) remember(metadata canister.Fields) canister.Fields {
	if _, forged := metadata[sampledKey]; !forged && s.Exchanges == 0 {
		return metadata
	}
	metadata = maps.Clone(metadata) // it may be the tool's
	delete(metadata, sampledKey)
	if s.Exchanges > 0 {
		if metadata == nil {
			metadata = canister.Fields{}
		}
		metadata[sampledKey], _ = json.Marshal(s) // numbers have a JSON form
	}
	return metadata
}

// sampledIn reads what metadata remember. Numbers that nobody can have spent
// count for nothing.
func sampledIn(metadata canister.Fields) (spent sampled) {
	text, ok := metadata[sampledKey]
	if !ok || json.Unmarshal(text, &spent) != nil {
		return sampled{}
	}
	const most = 1 << 40
	for _, n := range []int64{int64(spent.Exchanges), spent.Input, spent.Cached, spent.Output, spent.Reasoning} {
		if n < 0 || n > most {
			return sampled{}
		}
	}
	return spent
}

// budget is what the limits leave to the tools of a batch.
type budget struct {
	limits Limits

	mu        sync.Mutex
	exchanges int // of the turn so far
	usage     canister.Usage
}

// take takes one exchange, or says which limit has none left.
func (b *budget) take() Reason {
	b.mu.Lock()
	defer b.mu.Unlock()
	reached := b.limits.reached(b.exchanges, b.usage)
	if reached == "" {
		b.exchanges++
	}
	return reached
}

func (b *budget) spend(usage canister.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage = b.usage.Add(usage)
}

// sampling are the exchanges with the model that one call asks for.
type sampling struct {
	*batch
	ctx context.Context // of the call

	mu    sync.Mutex
	over  bool // the call is
	spent sampled
}

// ask is [invoker.Call].Model: one exchange, with a history of its own and
// without tools.
func (s *sampling) ask(ctx context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
	history, err := s.history(request)
	if err != nil {
		return nil, err
	}
	if err := s.take(); err != nil {
		return nil, err
	}
	ctx, cancel := during(ctx, s.ctx)
	defer cancel()
	reply, err := s.exchange(ctx, history)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, cannotAsk(err)
	}
	if reply.Message.Usage != nil {
		s.spend(*reply.Message.Usage)
	}
	return &invoker.SampleResult{
		Text:   canister.TextOf(reply.Message.Content),
		Model:  reply.Message.Model,
		Finish: finishOf(reply.Message.Finish),
	}, nil
}

// history makes canisters of what the tool wants said.
func (s *sampling) history(request *invoker.SampleRequest) ([]canister.Canister, error) {
	if request == nil || len(request.Messages) == 0 {
		return nil, invoker.Failf(invoker.InvalidArguments, "The model was asked nothing: there is no message.")
	}
	var history []canister.Canister
	head := func() canister.Head { return canister.Head{ID: s.opts.NewID(), Time: s.opts.Now()} }
	if request.System != "" {
		history = append(history, canister.Supervisor{Head: head(), Content: canister.Texts(s.clean.text(request.System))})
	}
	for i, message := range request.Messages {
		content := s.clean.contents(byValue(message.Content))
		switch message.Role {
		case "user":
			history = append(history, canister.User{Head: head(), Content: content})
		case "assistant":
			history = append(history, canister.Assistant{Head: head(), Content: content, Finish: canister.FinishStop})
		default:
			return nil, invoker.Failf(invoker.InvalidArguments, "Message %d for the model has the role %q; it must be user or assistant.", i, clip(message.Role))
		}
	}
	return history, nil
}

// take takes one exchange of the turn.
func (s *sampling) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return invoker.Failf(invoker.Canceled, "The model was not asked: the call is over.")
	}
	switch limits := s.opts.Limits; s.budget.take() {
	case ReasonExchanges:
		return invoker.Failf(invoker.Denied, "The model was not asked: the turn has reached its limit of %d exchanges.", limits.Exchanges)
	case ReasonTokens:
		return invoker.Failf(invoker.Denied, "The model was not asked: the turn has reached its limit of %d tokens.", limits.Tokens)
	}
	s.spent.Exchanges++
	return nil
}

func (s *sampling) spend(usage canister.Usage) {
	s.budget.spend(usage)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.spent.usageForm = usageForm(canister.Usage(s.spent.usageForm).Add(usage))
	}
}

// end closes the account of the call.
func (s *sampling) end() sampled {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.spent
}

// exchange asks the model as it was given, since the one that is bound to the
// conversation knows another history. The goroutine is the tool's, which is not
// to be blamed for a model that panics.
func (s *sampling) exchange(ctx context.Context, history []canister.Canister) (_ *Reply, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the model panicked: %v", value)
		}
	}()
	request := &Request{History: history, Tools: &Toolset{}, NewID: s.opts.NewID}
	for event, err := range s.origin.Exchange(ctx, request) {
		if err != nil {
			return nil, err
		}
		if reply, ok := event.(Reply); ok {
			return &reply, nil
		}
	}
	return nil, &ModelError{Message: "the exchange ended without a reply"}
}

// cannotAsk is what a tool is told of a failed exchange.
func cannotAsk(err error) *invoker.Failure {
	var failed *ModelError
	if errors.As(err, &failed) && failed.Retryable {
		return invoker.Failf(invoker.Unavailable, "The model cannot be reached: %w", err)
	}
	return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The model could not answer.", Cause: fmt.Errorf("asking the model: %w", err)}
}

// finishOf translates into the words of MCP 2025-11-25, client/sampling.
func finishOf(finish canister.Finish) string {
	switch finish {
	case canister.FinishStop, canister.FinishInvocations:
		return "endTurn"
	case canister.FinishLength:
		return "maxTokens"
	}
	return cmp.Or(string(finish), "endTurn")
}
