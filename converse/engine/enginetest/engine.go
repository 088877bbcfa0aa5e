// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/suite"
)

// Harness describes a kind of engine under test to the suite.
type Harness struct {
	// Store has the conversations. It must be empty at first.
	Store history.Store
	// Start starts an engine over Store, as in a new process. The engine creates
	// conversations with the function that open returns. The argument of open is the
	// log of the conversations: the Store, or its wrapper in that process.
	Start func(open func(history.Log) converse.OpenFunc) (Process, error)
	// Patience is how long the suite waits for events that should happen soon; default
	// 30 s. Within this time an engine must notice that another process has died.
	Patience time.Duration
}

// Process is an engine and a way to kill its process.
type Process struct {
	Engine engine.Engine
	// Kill ends the running work as if the process had died: once Kill has returned,
	// the process neither writes to the store nor calls tools. See [NewMortal].
	Kill func()
}

// TestEngine runs the suite that every [engine.Engine] must pass. It creates a new
// harness for each case; newHarness must release its resources with t.Cleanup. Each
// case is a subtest that logs its rule when it fails. An engine must retry failed turns
// within the harness's patience. A Send that waits for a conversation must call Done of
// its context when it is in the queue, and not before: this tells the suite when it can
// send the next message.
func TestEngine(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range engineCases {
		t.Run(c.name, func(t *testing.T) {
			s := &engineSubject{T: t, Harness: newHarness(t), stage: newStage(t)}
			s.Patience = cmp.Or(s.Patience, 30*time.Second)
			s.process = s.start()
			defer suite.Rule(t, c.rule)
			c.check(s)
		})
	}
}

// engineCase is one rule and how it is checked.
type engineCase struct {
	name  string
	rule  string
	check func(*engineSubject)
}

// engineSubject is the kind of engine in a running case.
type engineSubject struct {
	*testing.T
	Harness
	stage   *stage
	process Process
}

// start starts one more engine.
func (s *engineSubject) start() Process {
	s.Helper()
	process, err := s.Start(s.stage.opens)
	if err != nil {
		s.Fatalf("Start: %v", err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = process.Engine.Close(ctx) // also if it was killed
	})
	return process
}

// restart kills the engine and starts another.
func (s *engineSubject) restart() {
	s.Helper()
	s.process.Kill()
	s.process = s.start()
}

// context returns a context that ends when the suite's patience does.
func (s *engineSubject) context() context.Context { return suite.Context(s.T, s.Patience) }

// message returns a message of the user with the given ID.
func message(id, text string) canister.User {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// send sends a message, which must succeed.
func (s *engineSubject) send(conversation, id, text string) {
	s.Helper()
	if err := s.process.Engine.Send(s.context(), conversation, message(id, text)); err != nil {
		s.Fatalf("Send of %q to %s: %v", text, conversation, err)
	}
}

// log returns the canisters of a conversation, which must be valid.
func (s *engineSubject) log(conversation string) []canister.Canister {
	s.Helper()
	list, err := suite.Collect(s.Store.Read(s.context(), conversation, 0))
	if err != nil {
		s.Fatalf("Read of %s: %v", conversation, err)
	}
	for _, problem := range sequence.Check(list) {
		if problem.Rule != sequence.RuleOpen {
			s.Errorf("the log of %s is broken: %v", conversation, problem)
		}
	}
	return list
}

// wordsOf returns the texts of users, the model and tools in a log, in order.
func wordsOf(list []canister.Canister) []string {
	var said []string
	for _, c := range list {
		switch c.Kind() {
		case canister.KindUser, canister.KindAssistant, canister.KindResult:
			if text := canister.TextOf(canister.ContentOf(c)); text != "" {
				said = append(said, text)
			}
		}
	}
	return said
}

// said checks the texts of a log.
func (s *engineSubject) said(conversation string, want ...string) {
	s.Helper()
	if got := wordsOf(s.log(conversation)); !slices.Equal(got, want) {
		s.Errorf("the log of %s contains %q, want %q", conversation, got, want)
	}
}

// watch yields the events of an engine until the suite's patience ends, which fails the
// case.
func (s *engineSubject) watch(e engine.Engine, conversation string, after int) iter.Seq[engine.Event] {
	return func(yield func(engine.Event) bool) {
		for event, err := range e.Watch(s.context(), conversation, after) {
			if err != nil {
				s.Fatalf("Watch of %s: %v; the log has %s", conversation, err, describe(s.log(conversation)))
			}
			if !yield(event) {
				return
			}
		}
		s.Fatalf("Watch of %s ended without an error", conversation)
	}
}

// describe returns a short form of a log.
func describe(list []canister.Canister) []string {
	var short []string
	for _, c := range list {
		short = append(short, string(c.Kind())+" "+suite.Quote(canister.TextOf(canister.ContentOf(c))))
	}
	return short
}

// ended waits for the end of a turn, and returns it with the events before it. A
// failure that will be retried does not count as an end, and a wait only if waiting is
// set.
func (s *engineSubject) ended(conversation, turn string, waiting bool) (engine.Ended, []engine.Event) {
	s.Helper()
	var events []engine.Event
	for event := range s.watch(s.process.Engine, conversation, 0) {
		ended, ok := event.(engine.Ended)
		if ok && ended.Turn == turn && ended.Again.IsZero() && (waiting || ended.Reason != converse.ReasonWaiting) {
			return ended, events
		}
		events = append(events, event)
	}
	s.FailNow()
	return engine.Ended{}, nil
}

// answered waits until a turn is answered.
func (s *engineSubject) answered(conversation, turn string) {
	s.Helper()
	if ended, _ := s.ended(conversation, turn, false); ended.Reason != converse.ReasonAnswered {
		s.Fatalf("the turn %s of %s ended with %+v, want it answered", turn, conversation, ended)
	}
}

// soon checks that a function returns within the suite's patience.
func (s *engineSubject) soon(what string, do func() error) error {
	s.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(s.Patience):
		s.Fatalf("%s has not returned within %v", what, s.Patience)
		return nil
	}
}

// waiter is a context that reports the first call of Done: a Send calls it when it is
// in the queue of a conversation at work.
type waiter struct {
	context.Context
	once sync.Once
	at   chan struct{} // closed by the first call of Done
}

func newWaiter(ctx context.Context) *waiter { return &waiter{Context: ctx, at: make(chan struct{})} }

func (w *waiter) Done() <-chan struct{} {
	w.once.Do(func() { close(w.at) })
	return w.Context.Done()
}

// queued waits until a Send is in the queue, and reports whether it is.
func (s *engineSubject) queued(w *waiter) bool {
	s.Helper()
	select {
	case <-w.at:
		return true
	case <-time.After(s.Patience):
		s.Errorf("Send waits, and has not called Done of its context within %v", s.Patience)
		return false
	}
}

// reached waits until the model or a tool has begun something.
func (s *engineSubject) reached(what string) {
	s.Helper()
	select {
	case <-s.stage.started(what):
	case <-time.After(s.Patience):
		s.Fatalf("%q has not started within %v", what, s.Patience)
	}
}

// effects checks how often the tools have done something.
func (s *engineSubject) effects(what string, want int) {
	s.Helper()
	if got := s.stage.count(what); got != want {
		s.Errorf("the effect %q happened %d times, want %d", what, got, want)
	}
}

// ErrKilled is the error of a killed [Mortal].
var ErrKilled = errors.New("enginetest: the process was killed")

// Mortal is a process's view of a store. When the process is killed, the running calls
// end, and all later calls do nothing and return ErrKilled.
type Mortal struct {
	history.Store
	calls  chan struct{} // tokens; Kill takes all of them
	killed atomic.Bool
}

// mortalCalls is the maximum number of concurrent calls of a Mortal.
const mortalCalls = 64

// NewMortal returns a process's view of a store. Its Close does not close the store.
func NewMortal(store history.Store) *Mortal {
	return &Mortal{Store: store, calls: make(chan struct{}, mortalCalls)}
}

// Kill waits for the running calls and prevents further ones.
func (m *Mortal) Kill() {
	m.killed.Store(true)
	for range mortalCalls {
		m.calls <- struct{}{}
	}
	for range mortalCalls {
		<-m.calls
	}
}

// do calls something unless the process was killed.
func (m *Mortal) do(something func() error) error {
	m.calls <- struct{}{}
	defer func() { <-m.calls }()
	if m.killed.Load() {
		return ErrKilled
	}
	return something()
}

// Append implements [history.Log].
func (m *Mortal) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	return m.do(func() error { return m.Store.Append(ctx, conversation, length, canisters...) })
}

// Read implements [history.Log].
func (m *Mortal) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for c, err := range m.Store.Read(ctx, conversation, after) {
			if m.killed.Load() {
				c, err = nil, ErrKilled
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// List implements [history.Store].
func (m *Mortal) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		for info, err := range m.Store.List(ctx, filter) {
			if m.killed.Load() {
				yield(history.Info{}, ErrKilled)
				return
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Describe implements [history.Store].
func (m *Mortal) Describe(ctx context.Context, conversation string, change history.Change) error {
	return m.do(func() error { return m.Store.Describe(ctx, conversation, change) })
}

// Fork implements [history.Store].
func (m *Mortal) Fork(ctx context.Context, conversation string, length int, to string) error {
	return m.do(func() error { return m.Store.Fork(ctx, conversation, length, to) })
}

// Delete implements [history.Store].
func (m *Mortal) Delete(ctx context.Context, conversation string, length int) error {
	return m.do(func() error { return m.Store.Delete(ctx, conversation, length) })
}

// Close does nothing: the process does not own the store.
func (m *Mortal) Close() error { return nil }
