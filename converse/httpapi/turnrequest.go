// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/titles"
)

// turnRequest says how a request continues or begins a conversation.
type turnRequest struct {
	conversation  string // empty begins one
	fork          string // the conversation, if it was forked for the request
	from          int    // number of canisters that the request continues, at least
	earlier       []canister.Canister
	message       []canister.Content
	answers       []canister.Answer
	tools         []clienttools.Tool
	returned      []clientResult
	ignoreUnknown bool                           // results that do not belong to a call that waits are ignored
	callID        func(invocation string) string // the client's ID of a call; nil means callID
}

// answer adds an answer, the part at of the request.
func (s *turnRequest) answer(at string, one canister.Answer) error {
	if slices.ContainsFunc(s.answers, func(other canister.Answer) bool { return other.Wait == one.Wait }) {
		return invalid(at, "The wait has two answers.", "Send one.")
	}
	s.answers = append(s.answers, one)
	return nil
}

// startTurn sends the message, or the answers, of a request.
func (h *handler) startTurn(ctx context.Context, s turnRequest) (*turn, error) {
	owner, err := h.owner(ctx)
	if err != nil {
		return nil, err
	}
	if s.conversation == "" {
		id := newID()
		if _, err := h.store.Info(ctx, id); err != nil && !errors.Is(err, history.ErrNotFound) {
			return nil, err // nothing was sent: the client may repeat the request
		}
		return h.startNew(ctx, newConversation{id: id, owner: owner, earlier: s.earlier, message: s.user()})
	}
	found, err := h.ownedBy(ctx, s.conversation)
	if err != nil {
		return nil, err
	}
	if len(s.answers)+len(s.returned) > 0 {
		if t, err := h.continueTurn(ctx, found, s); err != nil || len(s.message) == 0 || t.repeated {
			return t, err
		}
	}
	user := s.user()
	entry := Entry{Conversation: found.ID, Canister: user}
	if s.fork != "" { // a repeated request has another fork, and is the same entry
		entry.Conversation, entry.ForkedAt = found.Parent, found.ParentLength
	}
	if err := h.Admit(ctx, entry, func(ctx context.Context) error { return h.sendMessage(ctx, found.ID, user) }); err != nil {
		return nil, err
	}
	return &turn{h: h, conversation: found.ID, id: user.ID, after: h.before(ctx, found.ID, user.ID, found.Length), sent: true}, nil
}

// user returns the message of a request, with the tools of its client.
func (s *turnRequest) user() canister.User {
	head := canister.Head{ID: newID(), Time: time.Now(), Extra: canister.Extra{Metadata: clienttools.With(nil, s.tools)}}
	return canister.User{Head: head, Content: s.message}
}

// startNew begins a conversation with the title of its message.
func (h *handler) startNew(ctx context.Context, b newConversation) (*turn, error) {
	b.title = titles.Of(b.message)
	if err := h.admitNew(ctx, b); err != nil {
		return nil, err
	}
	return &turn{h: h, conversation: b.id, id: b.message.ID, after: h.before(ctx, b.id, b.message.ID, 0), sent: true}, nil
}

// before returns the number of canisters before a message. It searches from position from on.
func (h *handler) before(ctx context.Context, conversation, message string, from int) int {
	at := from
	for c, err := range h.store.Read(ctx, conversation, from) {
		if err != nil || c.Header().ID == message {
			break
		}
		at++
	}
	return at
}
