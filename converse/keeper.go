// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

var errToolClosed = errors.New("converse: the tool is closed")

// owner stands for the trusted values that a conversation is bound to.
type owner [sha256.Size]byte

// ownerOf returns the owner that ctx speaks for: by the values of the names, or
// by all if names is nil.
func ownerOf(ctx context.Context, names []string) (owner, error) {
	values := invoker.TrustedFrom(ctx)
	if names != nil {
		values = values[:0]
		for _, name := range names {
			if value, ok := invoker.TrustedValue(ctx, name); ok {
				values = append(values, value)
			}
		}
	}
	var facts []any
	for _, value := range values {
		text, err := value.Reveal()
		if err != nil {
			return owner{}, fmt.Errorf("a conversation cannot be bound to its owner: %w", err)
		}
		facts = append(facts, value.Name(), string(text))
	}
	whole, err := json.Marshal(facts) // no two lists have one form
	return sha256.Sum256(whole), err
}

// OwnerOf returns a text that stands for the trusted values of ctx that have the
// names, or for all if names is nil, and does not tell them: what a [Tool] binds
// its conversations to, for who keeps some elsewhere.
func OwnerOf(ctx context.Context, names []string) (string, error) {
	owner, err := ownerOf(ctx, names)
	return hex.EncodeToString(owner[:]), err
}

// talk is a conversation that a [Tool] keeps.
type talk struct {
	id           string
	owner        owner
	conversation *Conversation // nil until it is open

	// Guarded by keeper.mu:

	cancel  context.CancelCauseFunc // of the call that has it; nil when idle
	since   time.Time               // when it became idle
	expires *time.Timer             // nil unless it is idle
}

// keeper keeps the conversations of a [Tool].
type keeper struct {
	most   int
	each   int // of one owner
	idle   time.Duration
	logger *zap.Logger

	mu     sync.Mutex
	talks  map[string]*talk
	closed bool
	work   sync.WaitGroup // calls, and conversations that are being closed
}

// make makes room for a new conversation and takes it.
func (k *keeper) make(id string, owner owner, cancel context.CancelCauseFunc) (*talk, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, invoker.Failf(invoker.Canceled, "The conversations are being shut down.")
	}
	if err := k.makeRoom(owner); err != nil {
		return nil, err
	}
	t := &talk{id: id, owner: owner, cancel: cancel}
	k.talks[id] = t
	k.work.Add(1)
	return t, nil
}

// makeRoom ends a conversation if there is no room for one more of an owner;
// k.mu is held.
func (k *keeper) makeRoom(owner owner) error {
	owned := k.owned()
	theirs := func(t *talk) bool { return t.owner == owner }
	anybodys := func(*talk) bool { return true }
	var ends *talk
	switch {
	case owned[owner] >= k.each:
		if ends = k.spare(owned, theirs); ends == nil {
			return invoker.Failf(invoker.Unavailable, "All %d conversations that one caller may hold at the same time are at work.", k.each)
		}
	case len(k.talks) >= k.most:
		owned[owner]++ // with the new one
		if ends = k.spare(owned, anybodys); ends == nil {
			return invoker.Failf(invoker.Unavailable, "All %d conversations that may be held at the same time are at work.", k.most)
		}
	default:
		return nil
	}
	k.end(ends)
	return nil
}

// owned counts the conversations of each owner; k.mu is held.
func (k *keeper) owned() map[owner]int {
	owned := map[owner]int{}
	for _, t := range k.talks {
		owned[t.owner]++
	}
	return owned
}

// spare returns, of the idle conversations that may end, that of the owner with
// the most, and of several that which has been idle for the longest time; nil if
// there is none. k.mu is held.
func (k *keeper) spare(owned map[owner]int, mayEnd func(*talk) bool) *talk {
	var spare *talk
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

// take takes a conversation of its owner for a turn.
func (k *keeper) take(id string, owner owner, cancel context.CancelCauseFunc) (*talk, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.talks[id]
	switch {
	case k.closed:
		return nil, invoker.Failf(invoker.Canceled, "The conversations are being shut down.")
	case t == nil || t.owner != owner:
		return nil, noConversation(id)
	case t.cancel != nil:
		return nil, busy()
	}
	t.expires.Stop()
	t.cancel, t.expires = cancel, nil
	k.work.Add(1)
	return t, nil
}

// give gives a conversation back after its turn.
func (k *keeper) give(t *talk) {
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
		if t.expires == expires { // it is still the same idleness
			k.end(t)
		}
	})
	t.expires = expires
}

// drop forgets a conversation that could not be opened.
func (k *keeper) drop(t *talk) {
	defer k.work.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.talks, t.id)
}

// end closes an idle conversation beside everything else; k.mu is held.
func (k *keeper) end(t *talk) {
	if t.expires != nil {
		t.expires.Stop()
		t.expires = nil
	}
	delete(k.talks, t.id)
	k.work.Go(func() {
		if err := t.conversation.Close(context.Background()); err != nil {
			k.logger.Error("a conversation could not be closed", event.ConversationFailed, zap.String(telemetry.ConversationField, t.id), zap.Error(err))
		}
	})
}

// close ends everything and waits for it.
func (k *keeper) close(ctx context.Context) error {
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
	if err := wait(ctx, ended); err != nil {
		return fmt.Errorf("converse: closing, a conversation has not ended: %w", err)
	}
	return nil
}

func noConversation(id string) *invoker.Failure {
	return &invoker.Failure{
		Code:    invoker.NotFound,
		Message: fmt.Sprintf("There is no conversation %q, or it has ended. Leave it out to begin a new one.", textcut.Bytes(id, maxQuoted)),
		Pointer: "/conversation",
	}
}

func busy() *invoker.Failure {
	return &invoker.Failure{Code: invoker.Conflict, Message: "The conversation is busy with another message. Try again when that is answered.", Retryable: true}
}
