// SPDX-License-Identifier: Apache-2.0

package agenttool

import (
	"context"
	"encoding/hex"

	"github.com/consort-go/consort/converse/internal/owner"
)

// OwnerOf returns a text that identifies the trusted values of ctx with the given
// names, or all of them if names is nil, without revealing them. A tool
// binds each of its conversations to it.
func OwnerOf(ctx context.Context, names []string) (string, error) {
	id, err := owner.Of(ctx, names)
	return hex.EncodeToString(id[:]), err
}
