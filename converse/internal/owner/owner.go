// SPDX-License-Identifier: Apache-2.0

// Package owner identifies the owner of a conversation.
package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/invoker"
)

// ID identifies the trusted values that a conversation is bound to.
type ID [sha256.Size]byte

// Of returns the ID of the trusted values of ctx with the given names, or of all if
// names is nil.
func Of(ctx context.Context, names []string) (ID, error) {
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
			return ID{}, fmt.Errorf("a conversation cannot be bound to its owner: %w", err)
		}
		facts = append(facts, value.Name(), string(text))
	}
	whole, err := json.Marshal(facts) // distinct lists have distinct forms
	return sha256.Sum256(whole), err
}

// Digest returns a digest of the trusted values that work on a conversation is done for, as Of
// does. It differs between conversations, so that it does not reveal that two are for the same
// person.
func Digest(ctx context.Context, conversation string, names []string) (string, error) {
	who, err := Of(ctx, names)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(conversation+"\x00"), who[:]...))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
