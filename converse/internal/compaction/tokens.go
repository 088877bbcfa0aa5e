// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"cmp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/tokenestimate"
)

// The server of a model reports the tokens of past requests. These numbers are used, with
// [tokenestimate.InText], to estimate everything added since.
const (
	tokensPerMessage = 8    // the overhead of a message
	tokensPerMedia   = 1000 // an image or audio, whatever its size
)

// TokensOf estimates the tokens of a canister in a request.
func TokensOf(c canister.Canister) int64 {
	if !canister.Message(c) {
		return 0
	}
	tokens := int64(tokensPerMessage)
	if invocation, ok := c.(canister.Invocation); ok {
		return tokens + tokenestimate.InText(len(invocation.Name)+len(invocation.Arguments))
	}
	for _, content := range canister.ContentOf(c) {
		if IsMedia(content) {
			tokens += tokensPerMedia
		} else {
			tokens += tokenestimate.InText(bounds.Size(content))
		}
	}
	return tokens
}

// IsMedia reports whether a content is an image, audio or the like.
func IsMedia(c canister.Content) bool {
	p := canister.PayloadOf(c)
	if p.Type == "resource" {
		return p.Data != nil && (strings.HasPrefix(p.MIME, "image/") || strings.HasPrefix(p.MIME, "audio/"))
	}
	return p.Type == "image" || p.Data != nil
}

// RequestTokens estimates the tokens of the next request: the tokens of the last request and its
// answer, as the server counted them, or the number in the last mark, plus estimates
// for everything after it. It does not look further back.
func RequestTokens(history []canister.Canister) int64 {
	var tokens int64
	for i := len(history) - 1; i >= 0; i-- {
		if said, ok := history[i].(canister.Assistant); ok && said.Usage != nil && said.Usage.Input > 0 {
			return tokens + cmp.Or(said.Usage.Context, said.Usage.Input+max(0, said.Usage.Output-said.Usage.Reasoning))
		}
		if mark, ok := MarkOf(history[i]); ok && (Marks{}).Resolve(history[:i], mark) >= 0 {
			return tokens + mark.Tokens
		}
		tokens += TokensOf(history[i])
	}
	return tokens
}
