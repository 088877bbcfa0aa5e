// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Line is one exchange of a script: the expected request and the answer. The zero value
// accepts any request and gives an empty answer.
type Line struct {
	// Expect, if not nil, checks the request. Its error fails the exchange.
	Expect func(*converse.Request) error
	// Reasoning is streamed before Text, in pieces of a few bytes.
	Reasoning string
	// Text is the answer. It is streamed in pieces of a few bytes.
	Text string
	// Calls are the calls in the answer.
	Calls []Call
	// Finish defaults to FinishInvocations if there are Calls, otherwise to FinishStop.
	Finish canister.Finish
	// Usage is the usage of the exchange; nil if unknown.
	Usage *canister.Usage
	// Retries are yielded first.
	Retries []converse.Retry
	// Wait, if not nil, delays the reply after the text was streamed, until the channel
	// is closed or the exchange is cancelled.
	Wait <-chan struct{}
	// Err fails the exchange after the text was streamed.
	Err error

	// Lines of a transcript use the following fields instead of those above.
	events   []converse.ModelEvent        // yielded before the reply
	recorded *converse.Reply              // with the IDs of the transcript
	answered func(was, is converse.Reply) // receives the reply with its new IDs
	endless  bool                         // the reply never comes
}

// Call is a tool that a scripted model asks for.
type Call struct {
	Name      string // name of the tool for the model
	Arguments string // any text; a model can write anything
	CallID    string // generated if empty, or if another call of the line has it
}

// Script is a model that plays one line per exchange. An exchange beyond the last line
// fails, and so does one whose Expect returns an error. [Script.Err] reports it
// afterwards.
type Script struct {
	lines []Line

	mu   sync.Mutex
	next int
	err  error
}

var _ converse.Describer = (*Script)(nil)

// NewScript returns a model that plays the lines.
func NewScript(lines ...Line) *Script { return &Script{lines: lines} }

// Err returns the first departure from the script. If there was none but lines were left
// unplayed, it returns an error with their number; otherwise nil.
func (s *Script) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.next < len(s.lines) {
		return fmt.Errorf("conversetest: %d of %d lines of the script were not played", len(s.lines)-s.next, len(s.lines))
	}
	return s.err
}

// Describe implements [converse.Describer]. The model is "script" of the provider
// "conversetest".
func (s *Script) Describe() telemetry.ModelInfo {
	return telemetry.ModelInfo{Provider: "conversetest", Name: scriptName}
}

// scriptName is the name of the model.
const scriptName = "script"

// Exchange plays the next line. Like every model API it checks the request: the exchange
// fails if [sequence.Check] finds a problem in the history.
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

// take returns the next line and marks it as played.
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
	for _, problem := range sequence.Check(request.History) {
		return fmt.Errorf("conversetest: exchange %d received an invalid history: %v", number, problem)
	}
	if number > len(s.lines) {
		return fmt.Errorf("conversetest: exchange %d is not in the script, which has %d lines", number, len(s.lines))
	}
	if expect := s.lines[number-1].Expect; expect != nil {
		if err := expect(request); err != nil {
			return fmt.Errorf("conversetest: exchange %d differs from the script: %w", number, err)
		}
	}
	return nil
}

// play yields the events of the line.
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

// stream yields the events before the reply.
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

// wait returns a channel that is closed when the reply may be sent.
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

// withNewIDs returns a copy of reply with new IDs.
func withNewIDs(reply converse.Reply, newID func() string) converse.Reply {
	reply.Message.ID = newID()
	reply.Invocations = slices.Clone(reply.Invocations)
	for i := range reply.Invocations {
		reply.Invocations[i].ID = newID()
		reply.Invocations[i].Message = reply.Message.ID
	}
	return reply
}
