// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble/pins"
)

// Options are the options of an [Approver].
type Options struct {
	// Asker asks the person; nil if there is none.
	Asker Asker
	// Allowed reports whether a call runs without asking; nil allows none.
	Allowed func(converse.Approval) bool
	// Unanswered returns the error for a call without a person to ask. Problem is why
	// stored approvals could not be read, or nil. Required without an Asker.
	Unanswered func(ask converse.Approval, problem error) error
	// Store holds the approvals that hold for good; nil holds none.
	Store *Store
	// Server returns the server of an ensemble. Required with a Store.
	Server func(ensemble string) Server
	// Warn tells the person of a problem; nil tells nothing.
	Warn func(problem string)
}

// Approver decides about the calls of a conversation. Its methods may be called
// concurrently.
type Approver struct {
	options Options
	turns   chan struct{} // holds a value while no question is open

	mu           sync.Mutex
	later        error        // see Begin
	conversation string       // its ID
	allowed      map[key]bool // in this conversation
	warned       bool         // of the problem with the store
}

// NewApprover returns an Approver that has been asked nothing yet.
func NewApprover(options Options) *Approver {
	a := &Approver{options: options, turns: make(chan struct{}, 1), allowed: map[key]bool{}}
	a.turns <- struct{}{}
	return a
}

// Begin begins the conversation with an ID, and forgets the approvals of another one
// before. If later is not nil, questions may be answered with [Later], and Approve then
// returns that error.
func (a *Approver) Begin(conversation string, later error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.later = later
	if conversation != a.conversation {
		clear(a.allowed)
	}
	a.conversation = conversation
}

// Approve implements [converse.ApproveFunc].
func (a *Approver) Approve(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	if a.options.Allowed != nil && a.options.Allowed(ask) {
		return converse.Allow(), nil
	}
	k := a.keyOf(ask)
	if allowed, _, _ := a.recall(k); allowed { // no need to wait for another question
		return converse.Allow(), nil
	}
	select {
	case <-a.turns:
		defer func() { a.turns <- struct{}{} }()
	case <-ctx.Done():
		return converse.Decision{}, context.Cause(ctx)
	}
	allowed, changed, problem := a.recall(k) // the question before may have been about the same tool
	if allowed {
		return converse.Allow(), nil
	}
	if problem != nil {
		a.warn(problem)
	}
	if a.options.Asker == nil {
		return converse.Decision{}, a.options.Unanswered(ask, problem)
	}
	a.mu.Lock()
	later := a.later
	a.mu.Unlock()
	question := Question{
		Approval: ask, Changed: changed,
		Always: a.options.Store != nil && problem == nil && ask.Definition != nil, Later: later != nil,
	}
	answer, err := a.options.Asker.AskApproval(ctx, question)
	if err != nil {
		return converse.Decision{}, err
	}
	return a.decide(k, question, answer, later)
}

// decide applies an answer, and remembers it.
func (a *Approver) decide(k key, question Question, answer Answer, later error) (converse.Decision, error) {
	switch answer.Choice {
	case Once:
	case Always:
		if question.Always {
			err := a.options.Store.add(k, a.options.Server(k.ensemble))
			if err == nil {
				break // the store alone knows it, so that it can be revoked at once
			}
			a.tell(fmt.Sprintf("The answer holds for this conversation only: %v", err))
		}
		a.remember(k)
	case Conversation:
		a.remember(k)
	case Later:
		if later == nil {
			return converse.Decision{}, errors.New("approvals: the decision cannot be postponed")
		}
		return converse.Decision{}, later
	default:
		if answer.Reason == "" {
			return converse.Deny("The person said no."), nil
		}
		return converse.Deny("The person said no: " + answer.Reason), nil
	}
	return converse.Allow(), nil
}

// key identifies a tool: its names, its definition and its server.
type key struct {
	ensemble, tool, fingerprint, address string
}

func (a *Approver) keyOf(ask converse.Approval) key {
	k := key{ensemble: ask.Ensemble, tool: ask.Tool}
	if ask.Definition != nil {
		k.fingerprint = pins.Fingerprint(ask.Definition)
	}
	if a.options.Server != nil {
		k.address = a.options.Server(ask.Ensemble).Address
	}
	return k
}

// recall reports whether an earlier answer allows the tool, and whether the store has
// only another tool or server of the same name.
func (a *Approver) recall(k key) (allowed, changed bool, problem error) {
	a.mu.Lock()
	allowed = a.allowed[k]
	a.mu.Unlock()
	if allowed || a.options.Store == nil {
		return allowed, false, nil
	}
	return a.options.Store.find(k)
}

// remember allows the tool until the conversation ends.
func (a *Approver) remember(k key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed[k] = true
}

// warn tells the person once that the store cannot be read.
func (a *Approver) warn(problem error) {
	a.mu.Lock()
	warned := a.warned
	a.warned = true
	a.mu.Unlock()
	if !warned {
		a.tell(problem.Error())
	}
}

func (a *Approver) tell(problem string) {
	if a.options.Warn != nil {
		a.options.Warn(problem)
	}
}
