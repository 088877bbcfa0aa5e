// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"net/http"
	"regexp"

	"github.com/consort-go/consort/converse"
)

// contextCodes are the error codes of servers for a request that is too long.
var contextCodes = map[string]bool{
	converse.CodeContextLength:      true, // OpenAI, Azure, Groq
	"context_window_exceeded":       true,
	"model_context_window_exceeded": true,
	"exceed_context_size_error":     true, // llama.cpp
	"request_too_large":             true, // Anthropic
}

// contextWords matches the messages of servers that have no code for it, as found in
// their answers and issues.
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

// tooLargeForLimit matches the refusals of a request that is above a limit of tokens per minute by
// itself, so that waiting does not help: OpenAI's, with status 429, and Groq's, with 413.
var tooLargeForLimit = regexp.MustCompile(`(?i)request too large for .*tokens per min`)

// contextCode returns the code of a failure. For a request that is too long it is always
// converse.CodeContextLength. A limit of tokens per minute that other requests have used up is
// different, because waiting helps.
func contextCode(status int, message, code string) string {
	waits := status == http.StatusTooManyRequests || code == "rate_limit_exceeded"
	if tooLargeForLimit.MatchString(message) || !waits && (contextCodes[code] || contextWords.MatchString(message)) {
		return converse.CodeContextLength
	}
	return code
}
