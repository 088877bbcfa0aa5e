// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"net/http"
	"strings"

	"github.com/consort-go/consort/converse"
)

// Some servers reject answers of other models, because they lack data that all of the
// server's own answers have. These are placeholders for such data.
const (
	// noSignature is the extra_content of a call without a thought signature. Gemini 3
	// requires one of the first call in each message of the current turn. Google documents
	// this value for histories of other models (https://ai.google.dev/gemini-api/docs/thought-signatures, FAQ),
	// and of two such values it is the one that Vertex AI takes as well
	// (pydantic/pydantic-ai#3881). In Chat Completions, signatures are in extra_content
	// (#openai of the same page; vellum-ai/vellum-assistant#42485).
	noSignature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

	// noReasoning is the reasoning_content of an answer without reasoning. Kimi requires one
	// of messages with calls (anomalyco/opencode#10996), or of all (MoonshotAI/kimi-cli#2498).
	// DeepSeek requires one of all answers of a turn with calls, also of the last, which has
	// none (api-docs.deepseek.com/guides/thinking_mode, NousResearch/hermes-agent#14941). It
	// rejects an empty text and accepts a space (NousResearch/hermes-agent#18263).
	noReasoning = `" "`
)

// lacking returns the placeholders that a history needs, according to the refusal of a
// server. These are messages of Gemini, Vertex AI, Kimi and DeepSeek:
//
//	Function call is missing a thought_signature in functionCall parts.
//	function call `f` in the 2. content block is missing a `thought_signature`
//	thinking is enabled but reasoning_content is missing in assistant tool call message at index 2
//	The `reasoning_content` in the thinking mode must be passed back to the API.
//
// A server that knows no such member also names it, but does not say that it must be there.
func lacking(failed *converse.ModelError) (signatures, reasoning bool) {
	said := strings.ToLower(failed.Message)
	if failed.Status != http.StatusBadRequest && failed.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(said, "missing") && !strings.Contains(said, "must") && !strings.Contains(said, "require") {
		return false, false
	}
	return strings.Contains(said, "thought_signature"), strings.Contains(said, "reasoning_content")
}
