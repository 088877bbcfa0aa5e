// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// held is a conversation that a loop has held: what it appended, one append
// after another, and what Next needs beside that.
type held struct {
	appends [][]canister.Canister
	policy  converse.Policy
	now     time.Time
}

// list is what the first n appends have made.
func (h *held) list(n int) []canister.Canister {
	var list []canister.Canister
	for _, a := range h.appends[:n] {
		list = append(list, a...)
	}
	return list
}

// hold lets a loop hold a conversation with a model, tools and people who do
// anything that they may, in processes that die before or after any append and
// are followed by others. The same seed gives the same, but for calls that ran
// side by side, which may change places.
func hold(seed uint64) (*held, error) {
	l := &life{
		rng:    rand.New(rand.NewPCG(seed, 6)),
		Memory: history.NewMemory(),
		now:    time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
	}
	l.held.policy.Limits = converse.Limits{
		Exchanges:   l.of(0, 2, 4),
		Parallel:    l.of(1, 3),
		FinalAnswer: l.chance(2),
		ResultBytes: l.of(0, 500),
	}
	if l.chance(3) {
		l.held.policy.Compaction = &converse.Compaction{Window: int64(l.of(500, 2000)), Keep: l.of(1, 2), MaxTokens: 100}
	}
	for range l.of(1, 3, 6, 10) {
		if err := l.live(); err != nil {
			return nil, fmt.Errorf("the conversation of seed %d: %w", seed, err)
		}
	}
	l.held.now = l.clock()
	return &l.held, nil
}

var errDead = errors.New("the process is dead")

// life is a conversation and everything around it. It is the log too, so that
// it can die at an append.
type life struct {
	*history.Memory
	held held

	mu   sync.Mutex // guards the rest
	rng  *rand.Rand
	now  time.Time
	ids  int
	dies int // how many appends there are until the process dies, if more than 0
	late bool
	dead bool
}

// of chooses one, with equal chances.
func (l *life) of(choices ...int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return choices[l.rng.IntN(len(choices))]
}

// chance is true once in n times.
func (l *life) chance(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n) == 0
}

func (l *life) newID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	return fmt.Sprintf("c%d", l.ids)
}

// clock tells a time that never stands still.
func (l *life) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(time.Duration(1 + l.rng.IntN(1e9)))
	return l.now
}

// Append keeps what was appended. The process may die before it, or behind it.
func (l *life) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dies--; l.dies == 0 {
		l.dead = true
		if !l.late {
			return errDead
		}
	} else if l.dead {
		return errDead
	}
	if err := l.Memory.Append(ctx, conversation, length, canisters...); err != nil {
		return err
	}
	l.held.appends = append(l.held.appends, canisters)
	if l.dead {
		return errDead
	}
	return nil
}

// live is the life of one process, and what people do when it is over.
func (l *life) live() error {
	l.dies, l.late, l.dead = l.of(-1, -1, 1, 2, 3, 4, 6, 9, 13), l.chance(2), false
	roster, err := ensemble.NewRoster(l.tools())
	if err != nil {
		return err
	}
	opts := &converse.Options{
		ID: "talk", Log: l, OwnRoster: true, NewID: l.newID, Now: l.clock, Limits: l.held.policy.Limits,
		Compaction: l.held.policy.Compaction,
		Approve:    l.approve, Ask: l.ask, Doubt: converse.DoubtReport,
	}
	if l.chance(2) {
		opts.Doubt = converse.DoubtAsk
	}
	if l.chance(3) {
		opts.Instructions = l.text()
	}
	conversation := converse.New(fickle{l}, roster, opts)
	defer conversation.Close(context.Background())
	ctx := context.Background()
	if err := conversation.Load(ctx); err != nil {
		return err
	}
	_, done := conversation.Next().(converse.Done)
	switch {
	case done && l.chance(5):
		err = conversation.Add(ctx, canister.Document{Title: l.text(), Content: canister.Texts(l.text())})
	case done:
		_, err = conversation.Ask(ctx, canister.Text(l.text()))
	default:
		_, err = conversation.Run(ctx)
	}
	if _, model := errors.AsType[*converse.ModelError](err); err != nil && !model && !errors.Is(err, errDead) {
		return err
	}
	return l.people(ctx)
}

// people answer what is waited for, or let the time pass.
func (l *life) people(ctx context.Context) error {
	l.dies, l.dead = -1, false
	for _, wait := range converse.Waiting(l.held.list(len(l.held.appends)), l.clock()) {
		verdicts := wait.For.Answers()
		answer := canister.Answer{
			Head: canister.Head{ID: l.newID()}, Wait: wait.ID, By: "ann", Reason: l.text(),
			Verdict: verdicts[l.of(0, 1, 2, 3, 4, 5)%len(verdicts)],
		}
		switch answer.Verdict {
		case canister.VerdictChange, canister.VerdictAccept:
			answer.Arguments = json.RawMessage(`{"other":1.50}`)
		case canister.VerdictDone:
			answer.Content = canister.Texts(l.text())
		}
		switch l.of(0, 1, 2, 3, 4) {
		case 0: // nobody does
		case 1:
			l.mu.Lock()
			l.now = l.now.Add(48 * time.Hour)
			l.mu.Unlock()
		default:
			if err := converse.Answer(ctx, l, "talk", answer, l.clock()); err != nil && !errors.Is(err, converse.ErrNotWaiting) {
				return err
			}
		}
	}
	return nil
}

func (l *life) approve(context.Context, converse.Approval) (converse.Decision, error) {
	switch l.of(0, 0, 0, 1, 2, 3, 4) {
	case 1:
		return converse.Deny(l.text()), nil
	case 2:
		return converse.Change(json.RawMessage(`{"changed":true}`)), nil
	case 3:
		return converse.Defer(0, ""), nil
	case 4:
		return converse.Defer(time.Hour, "ann"), nil
	}
	return converse.Allow(), nil
}

func (l *life) ask(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if l.chance(2) {
		return nil, converse.Later(0, "")
	}
	return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"yes": true}}, nil
}

// text is one of any length, some of which stands beside the lines in stores
// that have such a place.
func (l *life) text() string {
	words := []string{"Good morning", "é", "🎻", "\"", "\n", "<&>", "\u2028", "\x00", "no\xffthing"}
	return strings.Repeat(words[l.of(0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)], l.of(0, 1, 2, 40, 400))
}
