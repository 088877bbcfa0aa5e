// SPDX-License-Identifier: Apache-2.0

// Package sender records the senders of the messages of stored conversations, so that a
// process without the sender can find the trusted values for the turn.
package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// Metadata is the name of the metadata of a message that has its [Sender].
const Metadata = "io.github.consort-go/sender"

// Sender is the sender of a message.
type Sender struct {
	// Owner is the owner of the conversations of the sender.
	Owner string `json:"owner"`
	// Client is the name of a client of the configuration; empty if it has none.
	Client string `json:"client,omitempty"`
	// Issuer is a digest of the settings of the issuer that identified the sender; empty for
	// clients of the configuration.
	Issuer string `json:"issuer,omitempty"`
	// Values are the trusted values by the issuer, without secret ones.
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

type senderKey struct{}

// With returns a context for messages of s; see [Mark].
func With(ctx context.Context, s *Sender) context.Context {
	return context.WithValue(ctx, senderKey{}, s)
}

// Mark records the sender of ctx in a message, if there is one.
func Mark(ctx context.Context, message *canister.User) error {
	s, ok := ctx.Value(senderKey{}).(*Sender)
	if !ok {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("the sender of a message cannot be recorded: %w", err)
	}
	metadata := maps.Clone(message.Metadata)
	if metadata == nil {
		metadata = canister.Fields{}
	}
	metadata[Metadata] = text
	message.Metadata = metadata
	return nil
}

// Without returns a canister without the record of its sender, as clients get it.
func Without(c canister.Canister) canister.Canister {
	message, is := c.(canister.User)
	if _, has := message.Metadata[Metadata]; !is || !has {
		return c
	}
	message.Metadata = maps.Clone(message.Metadata)
	delete(message.Metadata, Metadata)
	return message
}

// Last returns the sender of the last message of a conversation that an owner has sent; nil if
// no message has one. It reads the whole conversation only if its end has none.
func Last(ctx context.Context, log history.Log, conversation, owner string) (*Sender, error) {
	_, end, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool { return lastOf(end, owner) != nil })
	return lastOf(end, owner), err
}

// lastOf returns the sender of the last message that an owner has sent.
func lastOf(canisters []canister.Canister, owner string) *Sender {
	for _, c := range slices.Backward(canisters) {
		message, ok := c.(canister.User)
		if !ok {
			continue
		}
		s := new(Sender)
		if json.Unmarshal(message.Metadata[Metadata], s) == nil && s.Owner == owner {
			return s
		}
	}
	return nil
}
