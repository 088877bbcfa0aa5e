// SPDX-License-Identifier: Apache-2.0

// Package inner collects the calls of other tools that the call of a tool requests.
package inner

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// Requested implements [invoker.Tools] for one call.
type Requested struct {
	call    canister.Invocation
	state   *calls.State
	offered []*invoker.Definition

	mu     sync.Mutex
	wanted []canister.Invocation
	over   bool
}

var _ invoker.Tools = (*Requested)(nil)

// New returns the calls that a call requests while these tools are on offer. Tools that an
// earlier run has called count as offered, even if they are gone: such a call has its result.
func New(call canister.Invocation, state *calls.State, offered []*invoker.Definition) *Requested {
	for _, made := range state.Made {
		if !slices.ContainsFunc(offered, func(d *invoker.Definition) bool { return d.Name == made.Name }) {
			offered = append(slices.Clip(offered), &invoker.Definition{Name: made.Name})
		}
	}
	return &Requested{call: call, state: state, offered: offered}
}

// Offered implements [invoker.Tools].
func (r *Requested) Offered() []*invoker.Definition { return r.offered }

// invocation returns the call of a tool that this one makes.
func (r *Requested) invocation(key, name string, arguments json.RawMessage) canister.Invocation {
	return canister.Invocation{Message: r.call.Message, CallID: key, Name: name, Arguments: string(arguments), Parent: r.call.ID}
}

// made returns the call of an earlier run, or nil.
func (r *Requested) made(key string) *calls.Made {
	place := slices.IndexFunc(r.state.Made, func(m calls.Made) bool { return m.CallID == key })
	if place < 0 {
		return nil
	}
	return &r.state.Made[place]
}

// Result implements [invoker.Tools].
func (r *Requested) Result(key, name string, arguments json.RawMessage) (canister.Result, bool, error) {
	made := r.made(key)
	if made == nil {
		return canister.Result{}, false, nil
	}
	return made.Result, made.Result.ID != "", differs(made.Invocation, r.invocation(key, name, arguments))
}

// Request implements [invoker.Tools].
func (r *Requested) Request(key, name string, arguments json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.invocation(key, name, arguments)
	switch {
	case r.over:
		return fmt.Errorf("converse: the call of %s is over", textcut.Bytes(r.call.Name, bounds.MaxQuoted))
	case key == "" || r.made(key) != nil || slices.ContainsFunc(r.wanted, func(i canister.Invocation) bool { return i.CallID == key }):
		return fmt.Errorf("converse: the key %s of the call of %s is empty or taken", textcut.Bytes(key, bounds.MaxQuoted), textcut.Bytes(name, bounds.MaxQuoted))
	}
	if err := canister.Writable(asked); err != nil {
		return fmt.Errorf("converse: the call cannot be added to the history: %w", err)
	}
	r.wanted = append(r.wanted, asked)
	return nil
}

// End returns the requested calls, and refuses further ones. A nil r has not requested any.
func (r *Requested) End() []canister.Invocation {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.wanted
}

// differs returns an error if a call is not the one that was made with the same key.
func differs(made, asked canister.Invocation) error {
	if made.Name == asked.Name && made.Arguments == asked.Arguments {
		return nil
	}
	quoted := func(i canister.Invocation) string {
		return fmt.Sprintf("%s with %s", textcut.Bytes(i.Name, bounds.MaxQuoted), textcut.Bytes(i.Arguments, bounds.MaxQuoted))
	}
	return invoker.Failf(invoker.Internal, "Repeated, call %s is %s, but it was %s. Nothing was called again.",
		textcut.Bytes(asked.CallID, bounds.MaxQuoted), quoted(asked), quoted(made))
}
