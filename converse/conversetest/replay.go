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

// turnPatience is how long a replayed turn may take.
const turnPatience = 30 * time.Second

// Script returns a script with the model's part of the transcript.
func (t *Transcript) Script() *Script {
	return NewScript(newPlayer(t).lines...)
}

// Replay replays the transcript and returns the transcript of this run, for [Diff]. The
// model repeats its recorded answers. The user's messages and everything else that was
// added to the history from outside come from the transcript. The caller leaves or
// cancels at the recorded places. The tools are those of roster; if roster is nil, they
// are fakes that repeat the recorded behaviour, once for each call.
//
// options are the options of the recorded conversation. Instructions and History are
// ignored, because the transcript contains them. A turn is cancelled after 30 seconds.
// The error concerns the setup of the conversation, never the events of a turn.
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
				return nil, fmt.Errorf("conversetest: the input of turn %d: %w", i+1, err)
			}
		}
		playTurn(ctx, recorder, turn)
	}
	return recorder.Transcript()
}

// playTurn runs one turn. It leaves or cancels when exactly the same lines have happened
// as when the recorded caller did.
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

// soFar returns the lines of the current turn.
func (r *Recorder) soFar() ([]string, error) {
	turn := r.turns[len(r.turns)-1]
	return newAliases(r.talk.History()).lines(turn.happened)
}

// player holds the data for replaying a transcript.
type player struct {
	transcript *Transcript
	lines      []Line
	calls      map[string]*playedCall // by the alias of the invocation

	mu        sync.Mutex
	alias     map[string]string     // alias of each invocation of this run, by ID
	requested []canister.Invocation // calls that tools have made, and that did not run yet
}

// playedCall is the recorded behaviour of one call.
type playedCall struct {
	arguments   string
	progress    []invoker.Progress
	result      canister.Result
	interrupted bool                    // interrupted by the end of the turn
	rounds      [][]canister.Invocation // the calls that its tool made, and made together
	answered    bool                    // a call of the last round has its result
}

// eventForm has the members of an event that the player reads.
type eventForm struct {
	Event      string
	Name       string
	Text       string
	Attempt    int
	Error      string
	From, To   string
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

// readCanisters collects the calls and their results.
func (p *player) readCanisters(turn turn) {
	for _, c := range turn.added {
		switch c := c.(type) {
		case canister.Invocation:
			p.calls[c.ID] = &playedCall{arguments: c.Arguments}
			p.calls[c.Parent].made(c)
		case canister.Result:
			if program := p.calls[c.Parent]; program != nil {
				program.answered = true
			}
			if call := p.calls[c.Invocation]; call != nil {
				call.result = c
				call.interrupted = c.Code == string(invoker.Canceled) && turn.cut()
			}
		}
	}
}

// made adds a call that the tool of this one made. Inner is the model's own if c is nil.
func (c *playedCall) made(inner canister.Invocation) {
	if c == nil {
		return
	}
	if last := len(c.rounds) - 1; last >= 0 && !c.answered {
		c.rounds[last] = append(c.rounds[last], inner)
		return
	}
	c.rounds, c.answered = append(c.rounds, []canister.Invocation{inner}), false
}

// cut reports whether the turn was ended while calls may have been running.
func (t turn) cut() bool {
	if len(t.events) == 0 {
		return true
	}
	last, err := readEvent(t.events[len(t.events)-1])
	return err != nil || last.Event != "turn_completed" || last.Reason == converse.ReasonTime
}

// readEvents creates the lines of the model, one for each exchange.
func (p *player) readEvents(turn turn) {
	var line *Line // line of the current exchange
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

// progress returns the progress report that causes the event.
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

// modelEvents returns the model events that cause the event.
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
	case "exchange_moved":
		return []converse.ModelEvent{converse.Fallback{From: e.From, To: e.To, Err: errors.New(e.Error)}}
	}
	return nil
}

// replyOf returns the message with that alias and its calls.
func (p *player) replyOf(turn turn, alias json.RawMessage) *converse.Reply {
	reply := &converse.Reply{}
	var id string
	if err := json.Unmarshal(alias, &id); err != nil {
		return reply // the event's message differs from the one in the history
	}
	for _, c := range turn.added {
		switch c := c.(type) {
		case canister.Assistant:
			if c.ID == id {
				reply.Message = c
			}
		case canister.Invocation:
			if c.Message == id && c.Parent == "" {
				reply.Invocations = append(reply.Invocations, c)
			}
		}
	}
	return reply
}

// name maps the calls of a reply to the recorded calls.
func (p *player) name(was, is converse.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, invocation := range is.Invocations {
		p.alias[invocation.ID] = was.Invocations[i].ID
	}
}

// roster returns a roster with the fakes.
func (p *player) roster() (*ensemble.Roster, error) {
	var names []string
	tools := map[string][]invoker.Invoker{}
	for _, tool := range p.transcript.tools {
		if tools[tool.Ensemble] == nil {
			names = append(names, tool.Ensemble)
		}
		tools[tool.Ensemble] = append(tools[tool.Ensemble], &playedTool{p, ensemble.NameFor(tool.Ensemble, tool.Tool), invoker.Definition{
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

// playedTool is a fake that repeats the recorded behaviour of a tool.
type playedTool struct {
	player     *player
	name       string // that models use
	definition invoker.Definition
}

func (t *playedTool) Definition() *invoker.Definition { return &t.definition }

func (t *playedTool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	played := t.player.played(t.name, call)
	if played == nil {
		return invoker.Output{}, invoker.Failf(invoker.Internal, "The call is not in the transcript.")
	}
	if unmade, err := t.player.request(played, call.Tools); unmade || err != nil {
		return invoker.Output{}, err
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
		content = content[1:] // without the note that the arguments were changed
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

// played returns the recorded call of a tool, or nil. The IDs of calls that tools make are not
// known before: such a call is found by its name and its arguments.
func (p *player) played(name string, call *invoker.Call) *playedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	if alias := p.alias[call.ID]; alias != "" {
		return p.calls[alias]
	}
	place := slices.IndexFunc(p.requested, func(i canister.Invocation) bool { return i.Name == name && i.Arguments == string(call.Arguments) })
	if place < 0 { // an approval changed the arguments
		place = slices.IndexFunc(p.requested, func(i canister.Invocation) bool { return i.Name == name })
	}
	if place < 0 {
		return nil
	}
	alias := p.requested[place].ID
	p.alias[call.ID], p.requested = alias, slices.Delete(p.requested, place, place+1)
	return p.calls[alias]
}

// request requests the calls of the first round that was not made, and reports whether there
// is one.
func (p *player) request(played *playedCall, tools invoker.Tools) (unmade bool, err error) {
	if tools == nil {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, round := range played.rounds {
		for _, inner := range round {
			arguments := json.RawMessage(inner.Arguments)
			_, made, err := tools.Result(inner.CallID, inner.Name, arguments)
			if err != nil {
				return false, err
			}
			if made {
				continue
			}
			unmade = true
			if err := tools.Request(inner.CallID, inner.Name, arguments); err != nil {
				return false, err
			}
			p.requested = append(p.requested, inner)
		}
		if unmade {
			return true, nil
		}
	}
	return false, nil
}
