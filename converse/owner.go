// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/hex"

	"github.com/consort-go/consort/converse/internal/owner"
)

// OpenFunc makes the conversation with the given identity, which cannot be guessed and
// must be used as Options.ID. It may be called concurrently. The caller's trusted
// values are in ctx, and in the context of every turn.
type OpenFunc func(ctx context.Context, id string) (*Conversation, error)

// OwnerOf returns a text that identifies the trusted values of ctx with the given
// names, or all of them if names is nil, without revealing them. Package agenttool
// binds each conversation to it.
func OwnerOf(ctx context.Context, names []string) (string, error) {
	id, err := owner.Of(ctx, names)
	return hex.EncodeToString(id[:]), err
}
