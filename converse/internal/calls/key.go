// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"crypto/sha256"
	"encoding/base32"
)

// Key returns the idempotency key of an invocation. It is the same for each attempt,
// in each process, and differs between conversations, because a fork has the same
// invocations as its parent and makes calls of its own. If the conversation has no ID
// that other processes know, the key is the invocation's ID.
func Key(conversation, invocation string) string {
	if conversation == "" {
		return invocation
	}
	sum := sha256.Sum256([]byte(conversation + "\x00" + invocation))
	return base32.StdEncoding.EncodeToString(sum[:16])[:26]
}
