// SPDX-License-Identifier: Apache-2.0

package agenttool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/owner"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

var errToolClosed = errors.New("agenttool: the tool is closed")

// session is an open conversation of a [Tool].
type session struct {
	id           string
	owner        owner.ID
	conversation *converse.Conversation // nil until it is open

	// Guarded by sessions.mu:

	cancel  context.CancelCauseFunc // cancels the call that uses it; nil when idle
	since   time.Time               // when it became idle
	expires *time.Timer             // nil unless it is idle
}

// sessions holds the conversations of a [Tool].
type sessions struct {
	most   int
	each   int // the maximum for one owner
	idle   time.Duration
	logger *zap.Logger

	mu     sync.Mutex
	talks  map[string]*session
	closed bool
	work   sync.WaitGroup // calls, and conversations that are being closed
}

// make adds a session for a new conversation, in use by the caller.
func (k *sessions) make(id string, who owner.ID, cancel context.CancelCauseFunc) (*session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, invoker.Failf(invoker.Canceled, "The conversations are being shut down.")
	}
	if err := k.makeRoom(who); err != nil {
		return nil, err
	}
	t := &session{id: id, owner: who, cancel: cancel}
	k.talks[id] = t
	k.work.Add(1)
	return t, nil
}

// makeRoom ends an idle conversation if an owner cannot have another one otherwise;
// k.mu is held.
func (k *sessions) makeRoom(who owner.ID) error {
	owned := k.owned()
	ownedBy := func(t *session) bool { return t.owner == who }
	anyOwner := func(*session) bool { return true }
	var ends *session
	switch {
	case owned[who] >= k.each:
		if ends = k.spare(owned, ownedBy); ends == nil {
			return invoker.Failf(invoker.Unavailable, "All %d conversations that one caller may have at the same time are busy.", k.each)
		}
	case len(k.talks) >= k.most:
		owned[who]++ // including the new one
		if ends = k.spare(owned, anyOwner); ends == nil {
			return invoker.Failf(invoker.Unavailable, "All %d conversations that may be open at the same time are busy.", k.most)
		}
	default:
		return nil
	}
	k.end(ends)
	return nil
}

// owned counts the conversations of each owner; k.mu is held.
func (k *sessions) owned() map[owner.ID]int {
	owned := map[owner.ID]int{}
	for _, t := range k.talks {
		owned[t.owner]++
	}
	return owned
}

// spare returns an idle conversation that may end, or nil: of the owner with the most
// conversations, the one that has been idle for the longest time. k.mu is held.
func (k *sessions) spare(owned map[owner.ID]int, mayEnd func(*session) bool) *session {
	var spare *session
	for _, t := range k.talks {
		if t.cancel != nil || !mayEnd(t) {
			continue
		}
		if spare == nil || owned[t.owner] > owned[spare.owner] || owned[t.owner] == owned[spare.owner] && t.since.Before(spare.since) {
			spare = t
		}
	}
	return spare
}

// take claims a conversation of the owner for a turn.
func (k *sessions) take(id string, who owner.ID, cancel context.CancelCauseFunc) (*session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.talks[id]
	switch {
	case k.closed:
		return nil, invoker.Failf(invoker.Canceled, "The conversations are being shut down.")
	case t == nil || t.owner != who:
		return nil, noConversation(id)
	case t.cancel != nil:
		return nil, busy()
	}
	t.expires.Stop()
	t.cancel, t.expires = cancel, nil
	k.work.Add(1)
	return t, nil
}

// give releases a conversation after its turn.
func (k *sessions) give(t *session) {
	defer k.work.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	t.cancel, t.since = nil, time.Now()
	if k.closed {
		k.end(t)
		return
	}
	var expires *time.Timer
	expires = time.AfterFunc(k.idle, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.expires == expires { // it has not been used since
			k.end(t)
		}
	})
	t.expires = expires
}

// drop removes a conversation that could not be opened.
func (k *sessions) drop(t *session) {
	defer k.work.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.talks, t.id)
}

// end closes an idle conversation in the background; k.mu is held.
func (k *sessions) end(t *session) {
	if t.expires != nil {
		t.expires.Stop()
		t.expires = nil
	}
	delete(k.talks, t.id)
	k.work.Go(func() {
		if err := t.conversation.Close(context.Background()); err != nil {
			k.logger.Error("a conversation could not be closed", logevent.ConversationFailed, zap.String(telemetry.ConversationField, t.id), zap.Error(err))
		}
	})
}

// close ends all conversations and waits for them.
func (k *sessions) close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	for _, t := range k.talks {
		if t.cancel != nil {
			t.cancel(errToolClosed) // give ends it
		} else {
			k.end(t)
		}
	}
	k.mu.Unlock()
	ended := make(chan struct{})
	go func() { k.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		return fmt.Errorf("agenttool: closing: a conversation has not ended: %w", context.Cause(ctx))
	}
	return nil
}

func noConversation(id string) *invoker.Failure {
	return &invoker.Failure{
		Code:    invoker.NotFound,
		Message: fmt.Sprintf("There is no conversation %q, or it has ended. Omit it to start a new one.", textcut.Bytes(id, 200)),
		Pointer: "/conversation",
	}
}

func busy() *invoker.Failure {
	return &invoker.Failure{Code: invoker.Conflict, Message: "The conversation is busy with another message. Try again when that is answered.", Retryable: true}
}
