// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Line is one exchange of a script: what the model is expected to be asked and
// what it says. The zero value expects anything and says nothing.
type Line struct {
	// Expect, if not nil, looks at the request; its error fails the exchange.
	Expect func(*converse.Request) error
	// Reasoning is streamed in pieces of a few bytes, ahead of Text.
	Reasoning string
	// Text is streamed in pieces of a few bytes, and is the answer.
	Text string
	// Calls are the tools to ask for.
	Calls []Call
	// Finish defaults to FinishInvocations if there are Calls, else to
	// FinishStop.
	Finish canister.Finish
	// Usage is what the exchange costs; nil for not known.
	Usage *canister.Usage
	// Retries are yielded before anything else.
	Retries []converse.Retry
	// Wait, if not nil, delays the reply, after the text was streamed, until
	// the channel is closed or the exchange is cancelled.
	Wait <-chan struct{}
	// Err fails the exchange after the text was streamed.
	Err error

	// Those of a transcript have these in place of the above.
	events   []converse.ModelEvent        // before the reply
	recorded *converse.Reply              // with identities of the transcript
	answered func(was, is converse.Reply) // told of the new identities
	endless  bool                         // the reply never comes
}

// Call is a tool that a scripted model asks for.
type Call struct {
	Name      string // under which the model knows the tool
	Arguments string // any text; a model can write anything
	CallID    string // made up when empty, or that of another call of the line
}

// Script is a model that plays lines, each exchange the next one. An exchange
// that the script does not have fails, as does one that departs from its
// Expect; [Script.Err] tells afterwards.
type Script struct {
	lines []Line

	mu   sync.Mutex
	next int
	err  error
}

var _ converse.Describer = (*Script)(nil)

// NewScript returns a model that plays the lines.
func NewScript(lines ...Line) *Script { return &Script{lines: lines} }

// Err returns the first departure from the script, or an error that counts the
// lines which were not played, or nil.
func (s *Script) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.next < len(s.lines) {
		return fmt.Errorf("conversetest: %d of %d lines of the script were not played", len(s.lines)-s.next, len(s.lines))
	}
	return s.err
}

// Describe implements [converse.Describer]: it is the model "script" of the
// provider "conversetest".
func (s *Script) Describe() telemetry.ModelInfo {
	return telemetry.ModelInfo{Provider: "conversetest", Name: scriptName}
}

// scriptName is the name of a model that plays a script.
const scriptName = "script"

// Exchange plays the next line. It checks the request as every model API does:
// a history that [canister.Check] finds fault with fails the exchange.
func (s *Script) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		line, number, err := s.take(request)
		if err != nil {
			yield(nil, err)
			return
		}
		line.play(ctx, number, request, yield)
	}
}

// take claims the next line.
func (s *Script) take(request *converse.Request) (Line, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.next + 1
	err := s.check(number, request)
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return Line{}, number, err
	}
	s.next++
	return s.lines[number-1], number, nil
}

func (s *Script) check(number int, request *converse.Request) error {
	for _, problem := range canister.Check(request.History) {
		return fmt.Errorf("conversetest: exchange %d was given a broken history: %v", number, problem)
	}
	if number > len(s.lines) {
		return fmt.Errorf("conversetest: exchange %d is not in the script, which has %d lines", number, len(s.lines))
	}
	if expect := s.lines[number-1].Expect; expect != nil {
		if err := expect(request); err != nil {
			return fmt.Errorf("conversetest: exchange %d departs from the script: %w", number, err)
		}
	}
	return nil
}

// play yields what the line says.
func (l Line) play(ctx context.Context, number int, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
	for event := range l.stream() {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		if !yield(event, nil) {
			return
		}
	}
	select {
	case <-l.wait():
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		yield(nil, ctx.Err())
	case l.Err != nil:
		yield(nil, l.Err)
	default:
		yield(l.reply(number, request), nil)
	}
}

// stream yields what comes before the reply.
func (l Line) stream() iter.Seq[converse.ModelEvent] {
	if l.events != nil {
		return slices.Values(l.events)
	}
	return func(yield func(converse.ModelEvent) bool) {
		for _, retry := range l.Retries {
			if !yield(retry) {
				return
			}
		}
		for text := range suite.Pieces(l.Reasoning) {
			if !yield(converse.Delta{Reasoning: text}) {
				return
			}
		}
		for text := range suite.Pieces(l.Text) {
			if !yield(converse.Delta{Text: text}) {
				return
			}
		}
	}
}

// wait returns the channel whose closing lets the reply go.
func (l Line) wait() <-chan struct{} {
	if l.Wait != nil || l.endless {
		return l.Wait
	}
	open := make(chan struct{})
	close(open)
	return open
}

func (l Line) reply(number int, request *converse.Request) converse.Reply {
	if l.recorded != nil {
		reply := withNewIDs(*l.recorded, request.NewID)
		l.answered(*l.recorded, reply)
		return reply
	}
	message := canister.Assistant{Model: scriptName, Finish: l.Finish, Usage: l.Usage}
	message.ID = request.NewID()
	if l.Text != "" {
		message.Content = canister.Texts(l.Text)
	}
	if message.Finish == "" {
		message.Finish = canister.FinishStop
		if len(l.Calls) > 0 {
			message.Finish = canister.FinishInvocations
		}
	}
	reply := converse.Reply{Message: message}
	taken := make(map[string]bool)
	for i, call := range l.Calls {
		invocation := canister.Invocation{
			Head:      canister.Head{ID: request.NewID()},
			Message:   message.ID,
			CallID:    call.CallID,
			Name:      call.Name,
			Arguments: call.Arguments,
		}
		for n := i + 1; invocation.CallID == "" || taken[invocation.CallID]; n++ {
			invocation.CallID = fmt.Sprintf("call_%d_%d", number, n)
		}
		taken[invocation.CallID] = true
		reply.Invocations = append(reply.Invocations, invocation)
	}
	return reply
}

// withNewIDs returns a reply with identities of its own.
func withNewIDs(reply converse.Reply, newID func() string) converse.Reply {
	reply.Message.ID = newID()
	reply.Invocations = slices.Clone(reply.Invocations)
	for i := range reply.Invocations {
		reply.Invocations[i].ID = newID()
		reply.Invocations[i].Message = reply.Message.ID
	}
	return reply
}
