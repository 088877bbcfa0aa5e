// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
)

// life is the life of one conversation, in one process after the other: each with a model
// of one of the servers, which can die at any append to the log. Between processes the
// conversation is forked, or damaged and repaired.
type life struct {
	t       *testing.T
	servers []*server
	secrets secrets
	store   *history.Memory
	name    string // of the conversation
	limits  converse.Limits
	compact *converse.Compaction
	longest int // bytes of a request that a server accepts; 0 for all

	mu    sync.Mutex // guards the rest
	rng   *rand.Rand
	kind  bool // the servers have no more faults
	ids   int
	calls int
	dies  int  // appends until the process dies, if more than 0
	late  bool // it dies after the append
	dead  bool
	seen  map[string]int // what happened, how often
}

var errDead = errors.New("the process is dead")

// newLife returns the life of a seed, with the servers of the given APIs.
func newLife(t *testing.T, seed uint64, apis ...string) *life {
	l := &life{
		t: t, store: history.NewMemory(), name: "talk", rng: rand.New(rand.NewPCG(seed, 15)), seen: map[string]int{},
		secrets: secrets{owners: map[string]*server{}},
	}
	for _, api := range apis {
		l.servers = append(l.servers, serversOf(api, l)...)
	}
	l.limits = converse.Limits{Exchanges: l.of(2, 4, 6), Parallel: l.of(0, 1, 3), FinalAnswer: l.chance(2), ResultBytes: l.of(0, 400)}
	if l.chance(2) {
		l.compact = &converse.Compaction{Window: int64(l.of(0, 1500, 2500)), Keep: l.of(1, 2), Trim: l.of(0, 100, -1), MaxTokens: 200}
		l.longest = l.of(0, 8000, 12000)
	}
	return l
}

// of returns one of the choices.
func (l *life) of(choices ...int) int { return choices[l.upTo(len(choices))] }

// upTo returns a number from 0 to less than n, and 0 if n is 0.
func (l *life) upTo(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(max(n, 1))
}

// chance is true once in n times, as long as odd things may happen.
func (l *life) chance(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.kind && l.rng.IntN(n) == 0
}

func (l *life) calm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kind
}

func (l *life) newID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	return fmt.Sprint("c", l.ids)
}

// note counts the happenings listed in histories_test.go.
func (l *life) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[what]++
}

// mortal is the log of a process that can die.
type mortal struct {
	*history.Memory
	l *life
}

// Append kills the process before or after it, when its time has come.
func (m mortal) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	l := m.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dies--; l.dies == 0 {
		l.dead = true
		l.seen["killed"]++
		if !l.late {
			return errDead
		}
	} else if l.dead {
		return errDead
	}
	if err := m.Memory.Append(ctx, conversation, length, canisters...); err != nil {
		return err
	}
	if l.dead {
		return errDead
	}
	return nil
}

// live runs processes, and finally one without faults.
func (l *life) live() {
	for range l.of(1, 2, 4, 6, 8) {
		l.process()
		l.between()
	}
	l.mu.Lock()
	l.kind, l.dies, l.dead = true, -1, false
	l.mu.Unlock()
	for i := range l.servers {
		l.run1(l.servers[i], func(ctx context.Context, talk *converse.Conversation) error {
			_, err := talk.Ask(ctx, canister.Text("And now?"))
			return err
		})
	}
	for _, c := range l.history() {
		if result, ok := c.(canister.Result); ok && result.Code == string(invoker.OutcomeUnknown) {
			l.note("unknown outcome")
		}
	}
}

// process runs one process, whose work fails only for reasons that the life gave it.
func (l *life) process() {
	l.mu.Lock()
	l.dies, l.late, l.dead = []int{-1, -1, 1, 3, 4, 6, 9, 13, 20}[l.rng.IntN(9)], l.rng.IntN(2) == 0, false
	l.mu.Unlock()
	l.run1(l.servers[l.upTo(len(l.servers))], func(ctx context.Context, talk *converse.Conversation) error {
		for range l.of(1, 2, 3, 4) {
			if err := l.work(ctx, talk); err != nil {
				return err
			}
		}
		return nil
	})
}

// run1 runs a process with a model of a server.
func (l *life) run1(s *server, work func(context.Context, *converse.Conversation) error) {
	chain := []converse.Model{}
	for i := range l.of(1, 1, 2, 3) {
		model, err := s.model()
		if i > 0 {
			model, err = l.servers[l.upTo(len(l.servers))].model()
		}
		if err != nil {
			l.t.Fatal(err)
		}
		defer model.Close()
		chain = append(chain, model)
	}
	s.away.Store(len(chain) > 1 && l.chance(2))
	defer s.away.Store(false)
	local, err := l.tools()
	if err != nil {
		l.t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(local)
	if err != nil {
		l.t.Fatal(err)
	}
	opts := &converse.Options{
		ID: l.name, Log: mortal{l.store, l}, OwnRoster: true, NewID: l.newID, Limits: l.limits, Compaction: l.compact,
		Ask: l.ask, AskDoubt: l.of(0, 0, 1) == 1,
	}
	if l.chance(3) {
		opts.Approve = l.approve
	}
	if l.chance(2) {
		opts.Instructions = "Be brief." + l.text()
	}
	talk := converse.New(converse.Chain(chain...), roster, opts)
	defer talk.Close(context.Background())
	err = work(context.Background(), talk)
	_, failed := errors.AsType[*converse.ModelError](err)
	if err != nil && (l.calm() || !failed && !strings.Contains(err.Error(), errDead.Error()) && !errors.Is(err, context.Canceled)) {
		if panicked, ok := errors.AsType[*contain.Panic](err); ok {
			l.t.Logf("%s", panicked.Stack)
		}
		l.t.Errorf("with a model of %s: %v", s.models[0], err)
	}
}

// work does one piece of work, and maybe interrupts it.
func (l *life) work(ctx context.Context, talk *converse.Conversation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if l.chance(6) {
		defer time.AfterFunc(time.Duration(l.of(1, 1e6, 1e9, 5e9)), cancel).Stop()
	}
	leave := l.of(-1, -1, -1, -1, 2, 4, 8, 16, 32)
	events := talk.Send(ctx, append(l.content(), canister.Text("Go on."))...)
	switch l.of(0, 0, 0, 0, 1, 2, 3) {
	case 1:
		events = talk.Continue(ctx)
	case 2:
		events = talk.Step(ctx)
	case 3:
		added := []canister.Canister{
			canister.Document{Title: l.text(), Content: l.content()},
			canister.Supervisor{Content: canister.Texts("Rule: " + l.text())}, canister.User{Content: l.content()},
		}[l.of(0, 1, 2)]
		if err := talk.Load(ctx); err != nil || len(canister.Pending(talk.History())) > 0 {
			return err
		}
		return talk.Add(ctx, added)
	}
	for event, err := range events {
		if err != nil {
			return err
		}
		switch event.(type) {
		case converse.CompactionCompleted:
			l.note("compacted")
		case converse.ExchangeRetried:
			l.note("retried")
		case converse.ExchangeMoved:
			l.note("moved to another model")
		}
		if leave--; leave == 0 {
			l.note("left")
			return nil
		}
	}
	return nil
}

// pause waits for a while, or until ctx ends.
func (l *life) pause(ctx context.Context) {
	select {
	case <-time.After(time.Duration(l.of(1, 1e6, 1e9))):
	case <-ctx.Done():
	}
}

func (l *life) approve(context.Context, converse.Approval) (converse.Decision, error) {
	switch l.of(0, 0, 0, 1, 2, 3) {
	case 1:
		return converse.Deny(l.text()), nil
	case 2:
		return converse.Change(json.RawMessage(`{"a":"changed"}`)), nil
	case 3:
		return converse.Defer(0, ""), nil
	}
	return converse.Allow(), nil
}

func (l *life) ask(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if l.chance(2) {
		return nil, converse.Later(0, "")
	}
	return &invoker.ElicitResult{Action: invoker.Accept}, nil
}

// history returns the conversation.
func (l *life) history() []canister.Canister {
	var list []canister.Canister
	for c, err := range l.store.Read(context.Background(), l.name, 0) {
		if errors.Is(err, history.ErrNotFound) {
			return nil
		}
		if err != nil {
			l.t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// between lets people answer, and forks or repairs the conversation.
func (l *life) between() {
	list := l.history()
	l.answers(list)
	list = l.history()
	next := l.newID()
	switch {
	case len(list) == 0:
		return
	case l.chance(5):
		if err := l.store.Fork(context.Background(), l.name, 1+l.upTo(len(list)), next); err != nil {
			l.t.Fatal(err)
		}
		l.note("forked")
		l.name = next
	case l.chance(5):
		list, changes := sequence.Repair(l.damaged(list))
		if err := l.store.Append(context.Background(), next, 0, l.through(list)...); err != nil {
			l.t.Fatal(err)
		}
		if len(changes) > 0 {
			l.note("repaired")
		}
		l.name = next
	}
}

// answers answers the open waits.
func (l *life) answers(list []canister.Canister) {
	for _, wait := range waits.Open("", list, time.Now()) {
		if l.chance(3) {
			continue
		}
		verdicts := wait.For.Answers()
		answer := canister.Answer{Head: canister.Head{ID: l.newID()}, Wait: wait.ID, By: "ann", Reason: "because", Verdict: verdicts[l.upTo(len(verdicts))]}
		switch answer.Verdict {
		case canister.VerdictChange, canister.VerdictAccept:
			answer.Arguments = json.RawMessage(`{"a":"changed"}`)
		case canister.VerdictDone:
			answer.Content = l.content()
		}
		if err := waits.Answer(context.Background(), l.store, l.name, answer, time.Now()); err != nil && !errors.Is(err, waits.ErrNotOpen) {
			l.t.Fatal(err)
		}
		l.note("answered")
	}
}

// damaged returns a history with lost, duplicated or reordered pieces.
func (l *life) damaged(list []canister.Canister) []canister.Canister {
	list = slices.Clone(list)
	for range l.of(0, 1, 2, 5) {
		switch i, k := l.upTo(len(list)), l.upTo(len(list)); {
		case len(list) < 2:
		case l.chance(2):
			list = slices.Delete(list, i, i+1)
		case l.chance(2):
			list[i], list[k] = list[k], list[i]
		default:
			list = slices.Insert(list, i, list[k])
		}
	}
	return list
}

// through returns a history that was written and read again.
func (l *life) through(list []canister.Canister) []canister.Canister {
	var lines bytes.Buffer
	if err := canister.Encode(&lines, list...); err != nil {
		l.t.Fatal(err)
	}
	var read []canister.Canister
	for c, err := range canister.Decode(&lines) {
		if err != nil {
			l.t.Fatal(err)
		}
		read = append(read, c)
	}
	return read
}

// end closes the servers, and reports their refusals and data that they should not have
// received. It returns the number of requests.
func (l *life) end() (requests int) {
	for _, s := range l.servers {
		n, refused := s.close()
		requests += n
		for _, reason := range refused {
			l.t.Errorf("%s at %s refused: %s", s.api, s.base, reason)
		}
	}
	for _, found := range l.secrets.found {
		l.t.Error(found)
	}
	return requests
}
