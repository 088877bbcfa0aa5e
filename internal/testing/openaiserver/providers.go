// SPDX-License-Identifier: Apache-2.0

package openaiserver

// providerRules are the further rules of [Script.Provider], in the words of each provider.
var providerRules = map[string]func([]wireMessage) *Failure{
	"":         func([]wireMessage) *Failure { return nil },
	"gemini":   validateGemini,
	"kimi":     validateKimi,
	"deepseek": validateDeepSeek,
}

// validateProvider checks a request by the further rules of a provider.
func validateProvider(w *wireRequest, provider string) *Failure {
	rule := providerRules[provider]
	if rule == nil {
		return departed("there is no provider %q", provider)
	}
	return rule(w.Messages)
}

// validateGemini checks that the first call in each message of the current turn has a
// signature (https://ai.google.dev/gemini-api/docs/thought-signatures).
func validateGemini(messages []wireMessage) *Failure {
	for i := turnStart(messages, len(messages)); i < len(messages); i++ {
		calls := messages[i].ToolCalls
		if len(calls) > 0 && calls[0].Extra.Google.ThoughtSignature == "" {
			return invalid("", "", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "+
				"and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. "+
				"Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", calls[0].Function.Name, i+1)
		}
	}
	return nil
}

// validateKimi checks that each message with calls has reasoning that is not empty
// (anomalyco/opencode#10996).
func validateKimi(messages []wireMessage) *Failure {
	for i, m := range messages {
		if len(m.ToolCalls) > 0 && m.Reasoning == "" {
			return invalid("", "", "thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
		}
	}
	return nil
}

// validateDeepSeek checks that each answer of a turn with calls has reasoning that is not
// empty (api-docs.deepseek.com/guides/thinking_mode, NousResearch/hermes-agent#18263).
func validateDeepSeek(messages []wireMessage) *Failure {
	for end := len(messages); end > 0; {
		start := turnStart(messages, end)
		calls, lacks := false, false
		for _, m := range messages[start:end] {
			calls = calls || len(m.ToolCalls) > 0
			lacks = lacks || m.Role == "assistant" && m.Reasoning == ""
		}
		if calls && lacks {
			return invalid("", "invalid_request_error", "The `reasoning_content` in the thinking mode must be passed back to the API.")
		}
		end = start
	}
	return nil
}

// turnStart returns the index of the last message of the user before end, or 0.
func turnStart(messages []wireMessage, end int) int {
	for end--; end > 0 && messages[end].Role != "user"; end-- {
	}
	return max(end, 0)
}
