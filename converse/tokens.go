// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"strings"

	"github.com/consort-go/consort/canister"
)

// How many tokens something has is known of what a model has been sent, since
// its server says so. Of what came after, these are the guesses, rather too much
// than too little: a token has four bytes in English prose, and fewer in code,
// JSON and most other languages.
const (
	bytesPerToken    = 3
	tokensPerMessage = 8    // what stands around a message
	tokensPerMedia   = 1000 // an image or a sound, whatever its bytes
)

// tokensOf guesses the tokens of a canister in a request.
func tokensOf(c canister.Canister) int64 {
	if !canister.Message(c) {
		return 0
	}
	tokens := int64(tokensPerMessage)
	if invocation, ok := c.(canister.Invocation); ok {
		return tokens + textTokens(len(invocation.Name)+len(invocation.Arguments))
	}
	for _, content := range canister.ContentOf(c) {
		if isMedia(content) {
			tokens += tokensPerMedia
		} else {
			tokens += textTokens(size(content))
		}
	}
	return tokens
}

func textTokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// isMedia reports whether a content is looked at or listened to.
func isMedia(c canister.Content) bool {
	switch c := c.(type) {
	case canister.ImageContent, canister.AudioContent:
		return true
	case canister.ResourceContent:
		return c.Blob != nil && (strings.HasPrefix(c.MIME, "image/") || strings.HasPrefix(c.MIME, "audio/"))
	}
	return false
}

// load is about how many tokens the next request has: what the model was last
// sent and said, as its server counted, or what the last mark says, and guesses
// for all behind it. It does not look further back.
func load(history []canister.Canister) int64 {
	var tokens int64
	for i := len(history) - 1; i >= 0; i-- {
		if said, ok := history[i].(canister.Assistant); ok && said.Usage != nil && said.Usage.Input > 0 {
			return tokens + said.Usage.Input + max(0, said.Usage.Output-said.Usage.Reasoning)
		}
		if mark, ok := markOf(history[i]); ok && (marks{}).resolve(history[:i], mark) >= 0 {
			return tokens + mark.Tokens
		}
		tokens += tokensOf(history[i])
	}
	return tokens
}
