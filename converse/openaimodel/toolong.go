// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"net/http"
	"regexp"

	"github.com/consort-go/consort/converse"
)

// contextCodes are the names that servers have for a request that is too long.
var contextCodes = map[string]bool{
	converse.CodeContextLength:      true, // OpenAI, Azure, Groq
	"context_window_exceeded":       true,
	"model_context_window_exceeded": true,
	"exceed_context_size_error":     true, // llama.cpp
	"request_too_large":             true, // Anthropic
}

// contextWords are what those say that have no name for it, as they were seen in
// the answers and the issues of the servers named.
var contextWords = regexp.MustCompile(`(?i)` +
	`maximum context length` + // vLLM, DeepSeek, OpenRouter, Fireworks, SGLang, Mistral
	`|maximum model length of \d` + // vLLM
	`|maximum prompt length is \d` + // xAI
	`|exceeds?( the| its| your)?( model's)?( available| maximum)? context (length|window|size|limit)` + // llama.cpp, OpenAI, Anthropic, llama-cpp-python
	`|context (length|window|size)( has been| is)?,? exceed` + // llama.cpp, MiniMax
	`|(longer|greater) than the( model's)? context length` + // SGLang, LM Studio
	`|context length of only \d` + // LM Studio
	`|(prompt|input) is too long` + // Anthropic, Bedrock, Fireworks
	`|input token count.{0,40} exceeds the maximum` + // Gemini
	`|reduce the length of the (messages|input)` + // Groq
	`|too large for model with` + // Mistral
	`|length of all messages is too long` + // Perplexity
	`|exceeded model token limit` + // Kimi
	`|range of input length should be` + // Qwen
	`|too many tokens: ` + // Cohere
	`|inputs\W* (must have less than|tokens \+) ` + // text-generation-inference
	`|input length exceeds`) // Ollama

// contextCode returns the code of a failure, by the one name that converse has
// for a request that is too long. A limit of tokens per minute is another thing,
// which waiting cures.
func contextCode(status int, message, code string) string {
	if status != http.StatusTooManyRequests && code != "rate_limit_exceeded" && (contextCodes[code] || contextWords.MatchString(message)) {
		return converse.CodeContextLength
	}
	return code
}
