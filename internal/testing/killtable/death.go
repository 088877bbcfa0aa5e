// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// death kills or stops a child at its point.
type death struct {
	Point
	stop bool
}

// here is the line that a child prints before it stops; its parent then stops it.
const here = "here\n"

// strike kills the process, or blocks until the parent lets it continue.
func (d *death) strike() {
	if d.stop {
		fmt.Print(here)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the signal may reach this thread last
}

// mortalStore is a store whose process dies at an append.
type mortalStore struct {
	history.Store
	death *death

	mu          sync.Mutex
	exchanges   map[string]int // of the model's messages, by ID
	invocations map[string]canister.Invocation
}

func newMortalStore(store history.Store, death *death) *mortalStore {
	return &mortalStore{Store: store, death: death, exchanges: map[string]int{}, invocations: map[string]canister.Invocation{}}
}

// Read also records the number of each exchange.
func (s *mortalStore) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for c, err := range s.Store.Read(ctx, conversation, after) {
			if err == nil {
				s.learn(c)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Append kills the process before or after the append at the point.
func (s *mortalStore) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	struck := false
	for _, c := range canisters {
		s.learn(c)
		struck = struck || s.meets(c)
	}
	before, after := s.death.appended()
	if struck && before {
		s.death.strike()
	}
	err := s.Store.Append(ctx, conversation, length, canisters...)
	if struck && after && err == nil {
		s.death.strike()
	}
	return err
}

func (s *mortalStore) learn(c canister.Canister) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c := c.(type) {
	case canister.Assistant:
		if s.exchanges[c.ID] == 0 {
			s.exchanges[c.ID] = len(s.exchanges) + 1
		}
	case canister.Invocation:
		s.invocations[c.ID] = c
	}
}

// meets reports whether a canister is at the point.
func (s *mortalStore) meets(c canister.Canister) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := func(invocation string) bool {
		i := s.invocations[invocation]
		return s.exchanges[i.Message] == s.death.Exchange && strings.HasSuffix(i.Name, "__"+s.death.Tool)
	}
	switch c := c.(type) {
	case canister.User:
		return s.death.Moment == BeforeUser || s.death.Moment == AfterUser
	case canister.Assistant:
		return (s.death.Moment == BeforeAnswer || s.death.Moment == AfterAnswer) && s.exchanges[c.ID] == s.death.Exchange
	case canister.Intent:
		return (s.death.Moment == BeforeIntent || s.death.Moment == AfterIntent) && of(c.Invocation)
	case canister.Wait:
		return s.death.Moment == AfterWait && of(c.Invocation)
	case canister.Result:
		return (s.death.Moment == BeforeResult || s.death.Moment == AfterResult) && of(c.Invocation)
	default:
		return false
	}
}

// mortalModel is a model whose process dies in the middle of its stream.
type mortalModel struct {
	converse.Model
	death *death
}

// Exchange kills the process at the first piece of text.
func (m mortalModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	exchange := 1
	for _, c := range request.History {
		if _, ok := c.(canister.Assistant); ok {
			exchange++
		}
	}
	return func(yield func(converse.ModelEvent, error) bool) {
		for event, err := range m.Model.Exchange(ctx, request) {
			if delta, ok := event.(converse.Delta); ok && delta.Text != "" && m.death.Moment == InStream && m.death.Exchange == exchange {
				m.death.strike()
			}
			if !yield(event, err) {
				return
			}
		}
	}
}
