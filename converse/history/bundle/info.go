// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"github.com/consort-go/consort/internal/transcript"
)

// version is the version of the bundle format.
const version = 1

// head is the line before the canisters of a conversation.
type head struct {
	Version int `json:"consort_conversation"`
	transcript.About
}
