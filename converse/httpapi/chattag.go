// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// chatTag returns the tag of a conversation that ends with these messages. A request that
// repeats them finds the conversation by it.
func chatTag(owner string, messages []inputMessage) string {
	parts := []string{owner}
	for _, m := range messages {
		text := string(m.Content)
		if content, err := partsOf("", m.Content); err == nil && m.Role == "assistant" {
			text = strings.TrimSpace(canister.TextOf(content)) // clients trim it
		}
		parts = append(parts, m.Role, text)
		if m.ToolCallID != "" {
			parts = append(parts, m.ToolCallID) // calls of another chat can have the same texts
		}
	}
	return chatPrefix + derived(parts...)
}

const (
	chatPrefix = "chat:"               // begins the tags of a chat
	endPrefix  = chatPrefix + "until-" // begins the tag of endTag
)

// endTag returns the tag that says where the last answer of a chat ends. A fork inherits the tag, so
// it names its conversation.
func endTag(conversation string, end int) string {
	return fmt.Sprintf("%s%d-%s", endPrefix, end, conversation)
}

// chatEnd returns the position that endTag has stored. It is not ok in a fork, which has the tags
// of another conversation.
func chatEnd(of history.Info) (end int, ok bool) {
	for _, tag := range of.Tags {
		if rest, is := strings.CutPrefix(tag, endPrefix); is {
			number, id, _ := strings.Cut(rest, "-")
			n, err := strconv.Atoi(number)
			return n, err == nil && id == of.ID && n <= of.Length
		}
	}
	return of.Length, true // stored by an earlier version
}

// tagged returns the owner's conversation with a tag, and the position where its last answer ends.
func (o openAI) tagged(ctx context.Context, owner, tag string) (found history.Info, end int, ok bool) {
	for found, err := range o.h.store.List(ctx, history.Filter{Owner: owner, Tags: []string{tag}, Limit: 16}) {
		if err != nil {
			break
		}
		if end, isOwn := chatEnd(found); isOwn && found.Owner == owner {
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

// startOrDiscard starts the turn of a request. If it is refused, its fork is deleted.
func (o openAI) startOrDiscard(ctx context.Context, s turnRequest) (*turn, error) {
	t, err := o.h.startTurn(ctx, s)
	if err != nil && s.fork != "" {
		err = errors.Join(err, o.h.store.Delete(context.WithoutCancel(ctx), s.fork, history.AnyLength))
	}
	return t, err
}

// claim marks a chat or a response as continued by a request, and reports whether it was free.
func (o openAI) claim(key string) bool {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	isFree := !o.h.claimed[key]
	o.h.claimed[key] = true
	return isFree
}

func (o openAI) release(key string) {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	delete(o.h.claimed, key)
}

// remember tags the conversation that the next request of a chat continues. Without the
// tags, it begins with the messages.
func (o openAI) remember(ctx context.Context, owner string, t *turn, messages []inputMessage) {
	found, err := o.h.store.Info(ctx, t.conversation)
	if err != nil {
		return
	}
	tags := slices.DeleteFunc(slices.Clone(found.Tags), func(tag string) bool { return strings.HasPrefix(tag, chatPrefix) })
	tags = append(tags, chatTag(owner, messages), endTag(t.conversation, t.after+len(t.canisters)))
	_ = o.h.store.Describe(ctx, t.conversation, history.Change{Tags: &tags})
}
