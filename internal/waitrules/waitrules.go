// SPDX-License-Identifier: Apache-2.0

// Package waitrules says which answers count, and for how long. The waits of conversations
// and of the calls of clients have the same rules.
package waitrules

import (
	"time"

	"github.com/consort-go/consort/canister"
)

// Holds reports whether an answer to a wait came in time, from a person who may give it.
func Holds(wait canister.Wait, answer canister.Answer) bool {
	return answer.Time.Before(wait.Deadline) && (wait.Who == "" || wait.Who == answer.By)
}

// Expiry returns when an answer that allows a call expires: it holds for as long as
// there was time to give it.
func Expiry(wait canister.Wait, answer canister.Answer) time.Time {
	return answer.Time.Add(wait.Deadline.Sub(wait.Time))
}
