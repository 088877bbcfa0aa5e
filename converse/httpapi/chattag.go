// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/chattags"
)

// chatDigest is the digest of the messages of a chat.
type chatDigest struct{ sum hash.Hash }

func newChatDigest(owner string, messages []inputMessage) chatDigest {
	d := chatDigest{sha256.New()}
	_, _ = io.WriteString(d.sum, owner) // never fails
	for _, m := range messages {
		text := string(m.Content)
		if content, err := partsOf("", m.Content); err == nil && m.Role == "assistant" {
			text = strings.TrimSpace(canister.TextOf(content)) // clients trim it
		}
		d.add(m.Role, text)
		if m.ToolCallID != "" {
			d.add(m.ToolCallID) // calls of another chat can have the same texts
		}
	}
	return d
}

func (d *chatDigest) add(parts ...string) {
	for _, part := range parts {
		_, _ = io.WriteString(d.sum, "\x00"+part)
	}
}

// tag returns the tag of a conversation that ends with the messages. A request that repeats them finds the
// conversation by it.
func (d *chatDigest) tag() string { return chattags.Messages(idOf(d.sum.Sum(nil))) }

// tagged returns the owner's conversation with a tag, and the position where its last answer ends.
func (o openAI) tagged(ctx context.Context, owner, tag string) (found history.Info, end int, ok bool) {
	for found, err := range o.h.store.List(ctx, history.Filter{Owner: owner, Tags: []string{tag}, Limit: 16}) {
		if err != nil {
			break
		}
		if end, isOwn := chattags.End(found); isOwn && found.Owner == owner {
			return found, end, true
		}
	}
	return history.Info{}, 0, false
}

// continueChat continues a conversation after its last answer. If it went on since, with a message that
// failed, was cancelled, or did not come from the chat, the request continues a fork, so that the
// model reads the messages of the request and no others.
func (o openAI) continueChat(ctx context.Context, found history.Info, end int, question string, s *turnRequest) (err error) {
	s.conversation = found.ID
	if s.answers, err = o.answersIn(ctx, found, question, canister.TextOf(s.message)); err != nil {
		return err
	}
	if len(s.answers) > 0 {
		s.message = nil
		return nil
	}
	since, err := history.From(ctx, o.h.store, found.ID, end)
	if err != nil || !slices.ContainsFunc(since, func(c canister.Canister) bool { return c.Kind() == canister.KindUser }) {
		return err
	}
	isDone, err := o.isDoneAt(ctx, found.ID, end)
	if err != nil || !isDone {
		return err
	}
	return o.fork(ctx, found.ID, end, s)
}

// fork lets a request continue a fork of a conversation.
func (o openAI) fork(ctx context.Context, conversation string, length int, s *turnRequest) error {
	s.fork = newID()
	s.conversation = s.fork
	return o.h.store.Fork(ctx, conversation, length, s.fork)
}

// remember tags the conversation that the next request of a chat continues, and its open question, if
// there is one. Without the tags, the request begins with the messages.
func (o openAI) remember(ctx context.Context, t *turn, tag, question string) {
	_ = o.h.store.Describe(ctx, t.conversation, chattags.Change(t.conversation, t.after+len(t.canisters), tag, question))
}
