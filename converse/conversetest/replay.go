// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// turnPatience is how long a turn may take when it is played again.
const turnPatience = 30 * time.Second

// Script returns the model's part of the transcript.
func (t *Transcript) Script() *Script {
	return NewScript(newPlayer(t).lines...)
}

// Replay plays the transcript again and returns what happened this time, for
// [Diff]. The model says what it said, the user's messages and whatever else
// was put into the history are those of the transcript, and the caller leaves
// or cancels where it did. The tools are those of roster; if it is nil they are
// fakes that do what the tools of the transcript did, once for each call.
//
// Options are those of the conversation as it was recorded; Instructions and
// History are not used, because the transcript has them. A turn is cancelled
// after 30 seconds. The error is one of putting the conversation together, and
// not of anything that happens in a turn.
func (t *Transcript) Replay(ctx context.Context, roster *ensemble.Roster, options *converse.Options) (*Transcript, error) {
	p := newPlayer(t)
	if roster == nil {
		fakes, err := p.roster()
		if err != nil {
			return nil, fmt.Errorf("conversetest: the tools of the transcript: %w", err)
		}
		defer fakes.Close(ctx)
		roster = fakes
	}
	var opts converse.Options
	if options != nil {
		opts = *options
	}
	opts.Instructions, opts.History, opts.OwnRoster = "", nil, false
	conversation := converse.New(NewScript(p.lines...), roster, &opts)
	defer conversation.Close(ctx)
	recorder := Record(conversation, roster)
	for i, turn := range t.turns {
		if len(turn.given) > 0 {
			if err := conversation.Add(ctx, turn.given...); err != nil {
				return nil, fmt.Errorf("conversetest: what was given for turn %d: %w", i+1, err)
			}
		}
		playTurn(ctx, recorder, turn)
	}
	return recorder.Transcript()
}

// playTurn carries the conversation on, and leaves or cancels where the
// recorded caller did: when just the same has happened.
func playTurn(ctx context.Context, recorder *Recorder, turn turn) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	end := slices.IndexFunc(turn.events, func(line string) bool { return line == leaves || line == cancels })
	reached := func() bool {
		if end < 0 {
			return false
		}
		lines, err := recorder.soFar()
		return err == nil && slices.Equal(lines, turn.events[:end])
	}
	if end == 0 {
		cancel()
	}
	for range recorder.Continue(ctx) {
		if !reached() {
			continue
		}
		if turn.events[end] == leaves {
			return
		}
		cancel()
	}
}

// soFar returns the lines of the turn that is under way.
func (r *Recorder) soFar() ([]string, error) {
	turn := r.turns[len(r.turns)-1]
	return newAliases(r.talk.History()).lines(turn.happened)
}

// player holds what a transcript is played again with.
type player struct {
	transcript *Transcript
	lines      []Line
	calls      map[string]*playedCall // by the alias of the invocation

	mu    sync.Mutex
	alias map[string]string // of the invocations of this time, by ID
}

// playedCall is what a recorded tool did.
type playedCall struct {
	arguments   string
	progress    []invoker.Progress
	result      canister.Result
	interrupted bool // by the end of the turn
}

// eventForm is what the player reads of an event.
type eventForm struct {
	Event      string
	Name       string
	Text       string
	Attempt    int
	Error      string
	Invocation string
	Done       float64
	Total      float64
	Message    string
	Partial    json.RawMessage
	Reason     converse.Reason
	Canister   json.RawMessage
}

func readEvent(line string) (eventForm, error) {
	var form eventForm
	if err := json.Unmarshal([]byte(line), &form); err != nil {
		return form, fmt.Errorf("the line is neither an event nor begins with an exclamation mark: %w", err)
	}
	return form, nil
}

func newPlayer(t *Transcript) *player {
	p := &player{transcript: t, calls: map[string]*playedCall{}, alias: map[string]string{}}
	for _, turn := range t.turns {
		p.readCanisters(turn)
		p.readEvents(turn)
	}
	return p
}

// readCanisters learns the calls and their results.
func (p *player) readCanisters(turn turn) {
	for _, c := range turn.added {
		switch c := c.(type) {
		case canister.Invocation:
			p.calls[c.ID] = &playedCall{arguments: c.Arguments}
		case canister.Result:
			if call := p.calls[c.Invocation]; call != nil {
				call.result = c
				call.interrupted = c.Code == string(invoker.Canceled) && turn.cut()
			}
		}
	}
}

// cut reports whether something ended the turn while calls may have run.
func (t turn) cut() bool {
	if len(t.events) == 0 {
		return true
	}
	last, err := readEvent(t.events[len(t.events)-1])
	return err != nil || last.Event != "turn_completed" || last.Reason == converse.ReasonTime
}

// readEvents makes the lines of the model, one for each exchange.
func (p *player) readEvents(turn turn) {
	var line *Line // of the exchange that is under way
	for _, text := range turn.events {
		if message, ok := strings.CutPrefix(text, failed); ok && line != nil {
			line.Err = errors.New(message)
		}
		event, err := readEvent(text)
		switch {
		case err != nil:
		case event.Event == "message_started":
			line = &Line{}
		case event.Event == "invocation_progressed" && p.calls[event.Invocation] != nil:
			call := p.calls[event.Invocation]
			call.progress = append(call.progress, event.progress())
		case line == nil:
		case event.Event == "message_completed":
			line.recorded = p.replyOf(turn, event.Canister)
			line.answered = p.name
			p.lines = append(p.lines, *line)
			line = nil
		default:
			line.events = append(line.events, event.modelEvents()...)
		}
	}
	if line == nil {
		return
	}
	line.endless = line.Err == nil // something else ended the turn
	p.lines = append(p.lines, *line)
}

// progress is what a tool reports so that the event happens.
func (e eventForm) progress() invoker.Progress {
	p := invoker.Progress{Done: e.Done, Total: e.Total, Message: e.Message}
	if e.Partial == nil {
		return p
	}
	line, err := json.Marshal(map[string]any{"kind": "result", "content": e.Partial})
	if err != nil {
		return p
	}
	if c, err := canister.Unmarshal(line); err == nil {
		p.Partial = c.(canister.Result).Content
	}
	return p
}

// modelEvents are what a model yields so that the event happens.
func (e eventForm) modelEvents() []converse.ModelEvent {
	switch e.Event {
	case "text_delta":
		return []converse.ModelEvent{converse.Delta{Text: e.Text}}
	case "reasoning_delta":
		return []converse.ModelEvent{converse.Delta{Reasoning: e.Text}}
	case "invocation_announced":
		return []converse.ModelEvent{converse.Delta{Invocation: e.Name}}
	case "exchange_retried":
		return []converse.ModelEvent{converse.Retry{Attempt: e.Attempt, Err: errors.New(e.Error)}}
	}
	return nil
}

// replyOf returns the message of that alias and its calls.
func (p *player) replyOf(turn turn, alias json.RawMessage) *converse.Reply {
	reply := &converse.Reply{}
	var id string
	if err := json.Unmarshal(alias, &id); err != nil {
		return reply // the event had another message than the history
	}
	for _, c := range turn.added {
		switch c := c.(type) {
		case canister.Assistant:
			if c.ID == id {
				reply.Message = c
			}
		case canister.Invocation:
			if c.Message == id {
				reply.Invocations = append(reply.Invocations, c)
			}
		}
	}
	return reply
}

// name remembers which recorded calls those of a reply are.
func (p *player) name(was, is converse.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, invocation := range is.Invocations {
		p.alias[invocation.ID] = was.Invocations[i].ID
	}
}

// roster makes the fakes.
func (p *player) roster() (*ensemble.Roster, error) {
	var names []string
	tools := map[string][]invoker.Invoker{}
	for _, tool := range p.transcript.tools {
		if tools[tool.Ensemble] == nil {
			names = append(names, tool.Ensemble)
		}
		tools[tool.Ensemble] = append(tools[tool.Ensemble], &playedTool{p, invoker.Definition{
			Name:        tool.Tool,
			InputSchema: json.RawMessage(`{"type":"object"}`),
			Exclusive:   tool.Exclusive,
			Hints: invoker.Hints{
				ReadOnly:    tool.ReadOnly,
				Idempotent:  tool.Idempotent,
				Destructive: tool.Destructive,
				OpenWorld:   tool.OpenWorld,
			},
		}})
	}
	var ensembles []*ensemble.Ensemble
	for _, name := range names {
		ensembles = append(ensembles, ensemble.Local(name, tools[name]...))
	}
	return ensemble.NewRoster(ensembles...)
}

// playedTool is a fake that does what the recorded tool did.
type playedTool struct {
	player     *player
	definition invoker.Definition
}

func (t *playedTool) Definition() *invoker.Definition { return &t.definition }

func (t *playedTool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	t.player.mu.Lock()
	played := t.player.calls[t.player.alias[call.ID]]
	t.player.mu.Unlock()
	if played == nil {
		return invoker.Output{}, invoker.Failf(invoker.Internal, "The call is not in the transcript.")
	}
	for _, progress := range played.progress {
		call.Report(progress)
	}
	if played.interrupted {
		<-ctx.Done()
		return invoker.Output{}, ctx.Err()
	}
	content := played.result.Content
	if asked := strings.TrimSpace(played.arguments); asked != "" && asked != string(call.Arguments) && len(content) > 0 {
		content = content[1:] // the line that says that the arguments were changed
	}
	if code := played.result.Code; code != "" {
		return invoker.Output{}, &invoker.Failure{
			Code:      invoker.Code(code),
			Message:   canister.TextOf(content),
			Retryable: played.result.Retryable,
			Content:   content,
			Metadata:  played.result.Metadata,
		}
	}
	return invoker.Output{Content: content, Metadata: played.result.Metadata}, nil
}
