// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
)

// What servers say of a request that is too long has one code, and is not tried
// again as it is. What only sounds like it keeps its own code.
func TestContextLength(t *testing.T) {
	for _, test := range []struct {
		server string
		status int // 0: in the place of an answer
		body   string
		code   string
	}{
		{
			"OpenAI", 400,
			`{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.",` +
				`"type":"invalid_request_error","code":"context_length_exceeded"}}`, converse.CodeContextLength,
		},
		{
			"OpenAI in a stream", 0,
			`{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
			converse.CodeContextLength,
		},
		{
			"Groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`,
			converse.CodeContextLength,
		},
		{
			"vLLM", 400,
			`{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",` +
				`"type":"BadRequestError","code":400}`, converse.CodeContextLength,
		},
		{
			"vLLM, decoder", 400,
			`{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`,
			converse.CodeContextLength,
		},
		{
			"OpenRouter", 400,
			`{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens.","code":400}}`,
			converse.CodeContextLength,
		},
		{
			"llama.cpp", 400,
			`{"error":{"code":400,"message":"request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",` +
				`"type":"exceed_context_size_error","n_prompt_tokens":4390,"n_ctx":4096}}`, converse.CodeContextLength,
		},
		{"llama.cpp, late", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, converse.CodeContextLength},
		{
			"llama-cpp-python", 400, `{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error"}}`,
			converse.CodeContextLength,
		},
		{
			"LM Studio", 400,
			`{"error":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length ` +
				`of only 32768 tokens, which is not enough."}`, converse.CodeContextLength,
		},
		{
			"Anthropic", 400,
			`{"error":{"code":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum","type":"invalid_request_error"}}`,
			converse.CodeContextLength,
		},
		{
			"Anthropic, with the answer", 400,
			"{\"error\":{\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\",\"type\":\"invalid_request_error\"}}",
			converse.CodeContextLength,
		},
		{"Anthropic, bytes", 413, `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, converse.CodeContextLength},
		{
			"Gemini", 400,
			`[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",` +
				`"status":"INVALID_ARGUMENT"}}]`, converse.CodeContextLength,
		},
		{
			"xAI", 400,
			`{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`,
			converse.CodeContextLength,
		},
		{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, converse.CodeContextLength},
		{
			"Mistral", 400,
			`{"message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`,
			converse.CodeContextLength,
		},
		{
			"Perplexity", 400, `{"error":{"message":"The total length of all messages is too long.","type":"bad_request","code":400}}`,
			converse.CodeContextLength,
		},
		{
			"Kimi", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192","type":"invalid_request_error"}}`,
			converse.CodeContextLength,
		},
		{"Qwen", 400, `{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 30720]"}}`, converse.CodeContextLength},
		{"Cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`, converse.CodeContextLength},
		{
			"TGI", 422, "{\"error\":\"Input validation error: `inputs` must have less than 1024 tokens. Given: 5000\",\"error_type\":\"validation\"}",
			converse.CodeContextLength,
		},
		{
			"TGI, with the answer", 422,
			"{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048.\"}", converse.CodeContextLength,
		},

		{
			"Groq, per minute", 413,
			"{\"error\":{\"message\":\"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please " +
				"reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}", converse.CodeContextLength,
		},
		{
			"OpenAI, per minute", 429,
			`{"error":{"message":"Request too large for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Requested 36741. The ` +
				`input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			converse.CodeContextLength,
		},
		{
			"OpenAI, too much at once", 429,
			`{"error":{"message":"Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested ` +
				`2000. Please try again in 2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, "rate_limit_exceeded",
		},
		{"Bedrock, throttled", 429, `{"message":"Too many tokens, please wait before trying again."}`, ""},
		{"a limit of requests", 429, `{"error":{"message":"The input is too long for your tier; slow down.","code":"tpm"}}`, "tpm"},
		{
			"a long name", 400,
			`{"error":{"message":"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",` +
				`"code":"string_above_max_length"}}`, "string_above_max_length",
		},
		{"a file", 400, `{"error":{"message":"The file is too large.","code":"invalid_file"}}`, "invalid_file"},
	} {
		t.Run(test.server, func(t *testing.T) {
			attempts := 0
			server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				attempts++
				if test.status == 0 {
					w.Header().Set("Content-Type", "text/event-stream")
					io.WriteString(w, "data: "+test.body+"\n\n")
					return
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			retries := 2
			if test.code != converse.CodeContextLength {
				retries = -1
			}
			got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{MaxRetries: retries}), newRequest())
			var failed *converse.ModelError
			if !errors.As(got.Err, &failed) {
				t.Fatal(got.Err)
			}
			if failed.Code != test.code || failed.Code == converse.CodeContextLength && failed.Retryable || attempts != 1 {
				t.Errorf("%d attempts, got %+v, want the code %q", attempts, *failed, test.code)
			}
		})
	}
}
