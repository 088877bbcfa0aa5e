// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/hex"

	"github.com/consort-go/consort/converse/internal/owner"
)

// OpenFunc makes the conversation of an identity, which nobody can guess and
// which belongs into Options.ID. It may be called concurrently. The trusted
// values of whoever calls are in ctx now, and in the context of every turn.
type OpenFunc func(ctx context.Context, id string) (*Conversation, error)

// OwnerOf returns a text that stands for the trusted values of ctx that have the
// names, or for all if names is nil, and does not tell them: what a [Tool] binds
// its conversations to, for who keeps some elsewhere.
func OwnerOf(ctx context.Context, names []string) (string, error) {
	id, err := owner.Of(ctx, names)
	return hex.EncodeToString(id[:]), err
}
