// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker"
)

// stage is the environment of the suite for engines, which outlives all processes:
// tools, a ledger of their effects, and a model that follows these commands of the
// user:
//
//	say WORDS            the model says the words
//	hold WORDS           the same, but the answer ends when the suite lets it
//	fail N COMMAND       it breaks off in the middle N times before it follows the command
//	refuse               the model's server refuses
//	panic                the model panics
//	call TOOL ARG ...    the model calls tools concurrently, and then says "done"
//
// The tools are effect, which takes no time, slow, which ends when the suite lets it,
// and approved, which requires approval.
type stage struct {
	roster *ensemble.Roster

	mu       sync.Mutex
	done     map[string]int           // the ledger
	begun    map[string]chan struct{} // closed when it has begun
	gates    map[string]chan struct{} // closed when it may end
	failures map[string]int
	requests int // to the model
}

// stageArgs are the arguments of the tools.
type stageArgs struct {
	What string `json:"what"`
}

func newStage(t *testing.T) *stage {
	s := &stage{done: map[string]int{}, begun: map[string]chan struct{}{}, gates: map[string]chan struct{}{}, failures: map[string]int{}}
	tool := func(name string, do func(context.Context, stageArgs) (string, error)) invoker.Invoker {
		made, err := invoker.New(name, "A tool of the suite.", do, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	effect := func(_ context.Context, in stageArgs) (string, error) { return s.effect(in.What), nil }
	slow := func(ctx context.Context, in stageArgs) (string, error) {
		said := s.effect(in.What)
		return said, s.hold(ctx, in.What)
	}
	var err error
	s.roster, err = ensemble.NewRoster(ensemble.Local("stage", tool("effect", effect), tool("slow", slow), tool("approved", effect)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.openAll()
		if err := s.roster.Close(context.Background()); err != nil {
			t.Errorf("the tools of the suite: %v", err)
		}
	})
	return s
}

// opens returns the function that creates the conversations of one process.
func (s *stage) opens(log history.Log) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(s, s.roster, &converse.Options{
			ID: id, Log: log, Instructions: "Follow the instructions.", Approve: approveOnStage, Limits: converse.Limits{Exchanges: 3},
		}), nil
	}
}

func approveOnStage(_ context.Context, ask converse.Approval) (converse.Decision, error) {
	if ask.Tool != "approved" {
		return converse.Allow(), nil
	}
	within := time.Hour
	if strings.Contains(string(ask.Arguments), "hurried") {
		within = 300 * time.Millisecond
	}
	return converse.Defer(within, ""), nil
}

// effect performs and records the effect of a tool, and returns its output.
func (s *stage) effect(what string) string {
	s.mu.Lock()
	s.done[what]++
	s.mu.Unlock()
	s.shut(s.of(s.begun, what))
	return "did " + what
}

// count returns how often an effect occurred.
func (s *stage) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[what]
}

// asked returns the number of requests to the model.
func (s *stage) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// of returns the channel for something.
func (s *stage) of(channels map[string]chan struct{}, what string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if channels[what] == nil {
		channels[what] = make(chan struct{})
	}
	return channels[what]
}

// started returns a channel that is closed when the model or a tool has begun something
// that it holds.
func (s *stage) started(what string) <-chan struct{} { return s.of(s.begun, what) }

// open lets a held action end.
func (s *stage) open(what string) { s.shut(s.of(s.gates, what)) }

func (s *stage) openAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gate := range s.gates {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// shut closes a channel unless it is closed.
func (s *stage) shut(c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// hold waits until something may end.
func (s *stage) hold(ctx context.Context, what string) error {
	gate := s.of(s.gates, what)
	s.shut(s.of(s.begun, what))
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Exchange implements [converse.Model].
func (s *stage) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		reply, err := s.exchange(ctx, request, func(text string) bool {
			for piece := range suite.Pieces(text) {
				if !yield(converse.Delta{Text: piece}, nil) {
					return false
				}
			}
			return true
		})
		switch {
		case err != nil:
			yield(nil, err)
		case reply != nil:
			yield(*reply, nil)
		}
	}
}

// exchange follows the last message of the user.
func (s *stage) exchange(ctx context.Context, request *converse.Request, stream func(string) bool) (*converse.Reply, error) {
	for _, problem := range sequence.Check(request.History) {
		return nil, fmt.Errorf("enginetest: the history is broken: %v", problem)
	}
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	text, called := lastOf(request.History)
	verb, words, _ := strings.Cut(text, " ")
	switch {
	case verb == "refuse":
		return nil, &converse.ModelError{Message: "no", Status: 400}
	case verb == "panic":
		panic("the model of the suite panics")
	case verb == "call" && !called:
		return callsOf(request, strings.Fields(words)), nil
	case verb == "call":
		words = "done"
	case verb == "fail":
		number, command, _ := strings.Cut(words, " ")
		verb, words, _ = strings.Cut(command, " ")
		if most, _ := strconv.Atoi(number); s.fails(text, most) {
			stream(words[:len(words)/2])
			return nil, &converse.ModelError{Message: "broke off", Retryable: true}
		}
	}
	if !stream(words) {
		return nil, nil
	}
	if verb == "hold" {
		if err := s.hold(ctx, words); err != nil {
			return nil, err
		}
	}
	return &converse.Reply{Message: canister.Assistant{
		Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(words), Finish: canister.FinishStop,
	}}, nil
}

// fails counts a failure, and reports whether at most most were counted so far.
func (s *stage) fails(text string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[text]++
	return s.failures[text] <= most
}

// lastOf returns the last text of the user, and whether tools were called for it.
func lastOf(list []canister.Canister) (text string, called bool) {
	for _, c := range list {
		switch c := c.(type) {
		case canister.User:
			text, called = canister.TextOf(c.Content), false
		case canister.Result:
			called = true
		}
	}
	return text, called
}

// callsOf returns a reply that calls tools, given as names and arguments in turn.
func callsOf(request *converse.Request, words []string) *converse.Reply {
	reply := &converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishInvocations}}
	for i := 0; i+1 < len(words); i += 2 {
		arguments, _ := json.Marshal(stageArgs{What: words[i+1]})
		reply.Invocations = append(reply.Invocations, canister.Invocation{
			Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID,
			CallID: fmt.Sprint("call-", i), Name: "stage__" + words[i], Arguments: string(arguments),
		})
	}
	return reply
}
