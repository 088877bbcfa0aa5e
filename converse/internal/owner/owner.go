// SPDX-License-Identifier: Apache-2.0

// Package owner identifies the owner of a conversation.
package owner

import (
	"context"
	"crypto/sha256"
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
