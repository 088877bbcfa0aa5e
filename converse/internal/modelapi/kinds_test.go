// SPDX-License-Identifier: Apache-2.0

package modelapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
)

// answering is a transport that gives every request the same answer.
type answering struct {
	status int
	body   string
}

// RoundTrip implements [http.RoundTripper].
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// refused asks a model and returns the error of the exchange.
func refused(t *testing.T, model converse.Model) *converse.ModelError {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range converse.New(model, nil, nil).Send(ctx, canister.Text("Hello.")) {
		var failed *converse.ModelError
		if errors.As(err, &failed) {
			return failed
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the exchange succeeded")
	return nil
}

// openAIError is the body of an error of OpenAI.
func openAIError(message, param, code string) string {
	quoted := func(text string) string {
		if text == "" {
			return "null"
		}
		return `"` + text + `"`
	}
	return `{"error":{"message":"` + strings.ReplaceAll(message, `"`,
		`\"`) + `","type":"invalid_request_error","param":` + quoted(param) + `,"code":` + quoted(code) + `}}`
}

// anthropicError is the body of an error of Anthropic.
func anthropicError(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"},"request_id":"req_1"}`
}

var half = 0.5

const noImages = "set openaimodel.Options.NoImages = true, so that the model gets a line of text in place of each image and PDF file, or send others"

// TestAdviceOfOpenAI: what servers with the APIs of OpenAI refuse has a code and the line
// to change. The answers are those of the named reports.
func TestAdviceOfOpenAI(t *testing.T) {
	const compatible = "http://localhost:8000/v1"
	for _, test := range []struct {
		name, source string
		options      openaimodel.Options
		status       int
		body         string
		code, advice string
	}{
		{
			"tools and reasoning", "https://github.com/GoogleChromeLabs/webmcp-tools/issues/417", openaimodel.Options{API: "chat"}, 400,
			openAIError("Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function "+
				"tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort", ""),
			converse.CodeAPI, `set openaimodel.Options.API = "responses"`,
		},
		{
			"tools and reasoning, older", "https://github.com/pipecat-ai/pipecat/issues/4043", openaimodel.Options{API: "chat"}, 400,
			openAIError("Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
				"reasoning_effort", ""),
			converse.CodeAPI, `set openaimodel.Options.API = "responses"`,
		},
		{
			"tools and reasoning, Azure's deployment", "https://github.com/GoogleChromeLabs/webmcp-tools/issues/417",
			openaimodel.Options{BaseURL: "https://me.openai.azure.com/openai/deployments/gpt?api-version=2025-01-01"}, 400,
			openAIError("Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function "+
				"tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort", ""),
			converse.CodeAPI, "change openaimodel.Options.BaseURL to https://me.openai.azure.com/openai/v1, which has Responses",
		},
		{
			"Responses only", "https://github.com/docker/docker-agent/issues/313", openaimodel.Options{API: "chat"}, 404,
			openAIError("This model is only supported in v1/responses and not in v1/chat/completions.", "model", ""),
			converse.CodeAPI, `set openaimodel.Options.API = "responses"`,
		},
		{
			"no chat model", "https://github.com/chatboxai/chatbox/issues/2173", openaimodel.Options{API: "chat"}, 404,
			openAIError("This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?", "model",
				""),
			converse.CodeAPI, `set openaimodel.Options.API = "responses"`,
		},
		{
			"max_tokens", "https://github.com/griptape-ai/ComfyUI-Griptape/issues/312",
			openaimodel.Options{API: "chat", MaxTokens: 100, MaxTokensField: "max_tokens"}, 400,
			openAIError("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens",
				"unsupported_parameter"),
			converse.CodeParameter, `set openaimodel.Options.MaxTokensField = "max_completion_tokens"`,
		},
		{
			"max_tokens, through a proxy", "https://github.com/caozhiyuan/copilot-api/issues/164",
			openaimodel.Options{BaseURL: compatible, MaxTokens: 100}, 400,
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' ` +
				`instead.","code":"invalid_request_body"}}`,
			converse.CodeParameter, `set openaimodel.Options.MaxTokensField = "max_completion_tokens"`,
		},
		{
			"temperature", "https://github.com/gabrii/Cursor-Azure-GPT-5/issues/33", openaimodel.Options{Temperature: &half}, 400,
			openAIError("Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.", "temperature",
				"unsupported_value"),
			converse.CodeParameter, "remove openaimodel.Options.Temperature",
		},
		{
			"temperature that no option sets", "https://github.com/gabrii/Cursor-Azure-GPT-5/issues/33", openaimodel.Options{}, 400,
			openAIError("Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.", "temperature",
				"unsupported_value"),
			converse.CodeParameter, "",
		},
		{
			"effort in Responses", "https://github.com/BerriAI/litellm/pull/38842", openaimodel.Options{ReasoningEffort: "high"}, 400,
			openAIError("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning.effort", "unsupported_parameter"),
			converse.CodeParameter, "remove openaimodel.Options.ReasoningEffort",
		},
		{
			"effort in Chat Completions", "https://github.com/carlrobertoh/ProxyAI/issues/1203", openaimodel.Options{API: "chat", ReasoningEffort: "high"}, 400,
			openAIError("Unsupported parameter: 'reasoning_effort' is not supported with this model.", "reasoning_effort", "unsupported_parameter"),
			converse.CodeParameter, "remove openaimodel.Options.ReasoningEffort",
		},
		{
			"effort, without its name in param", "https://github.com/generative-computing/mellea/issues/270",
			openaimodel.Options{API: "chat", ReasoningEffort: "high"}, 400,
			openAIError("Unrecognized request argument supplied: reasoning_effort", "", ""),
			converse.CodeParameter, "remove openaimodel.Options.ReasoningEffort",
		},
		{
			"a member of ExtraBody", "https://github.com/generative-computing/mellea/issues/270",
			openaimodel.Options{API: "chat", ExtraBody: map[string]any{"top_k": 3}}, 400,
			openAIError("Unrecognized request argument supplied: top_k", "", ""),
			converse.CodeParameter, `remove openaimodel.Options.ExtraBody["top_k"]`,
		},
		{
			"a member of another message", "https://platform.openai.com/docs/guides/error-codes",
			openaimodel.Options{ResponseFormat: &openaimodel.ResponseFormat{}}, 400,
			openAIError("Invalid value: 'input_text'. Supported values are: 'text'.", "input[0].content[0].type", "invalid_value"),
			"invalid_value", "",
		},
		{
			"verification to stream", "https://github.com/continuedev/continue/issues/8209", openaimodel.Options{}, 400,
			openAIError("Your organization must be verified to stream this model. Please go to: "+
				"https://platform.openai.com/settings/organization/general and click on Verify Organization.", "stream", "unsupported_value"),
			converse.CodeUnverified, "set openaimodel.Options.NoStream = true, or verify the organization",
		},
		{
			"no such model", "https://github.com/rd-1-2022/ai-openai-helloworld/issues/9", openaimodel.Options{}, 404,
			openAIError("The model `gpt-4o` does not exist or you do not have access to it.", "", "model_not_found"),
			converse.CodeModelNotFound, "change the name in openaimodel.New, or let the project of the key use this model",
		},
		{
			"a model that the project may not use", "https://github.com/cursor/cursor/issues/2953", openaimodel.Options{}, 403,
			openAIError("Project `proj_1` does not have access to model `gpt-4o-mini`", "", "model_not_found"),
			converse.CodeModelNotFound, "change the name in openaimodel.New, or let the project of the key use this model",
		},
		{
			"no such deployment", "https://github.com/chatboxai/chatbox/issues/861",
			openaimodel.Options{BaseURL: "https://me.openai.azure.com/openai/v1", APIKey: "k"}, 404,
			`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist. If you created the ` +
				`deployment within the last 5 minutes, please wait a moment and try again."}}`,
			converse.CodeModelNotFound, "change the name in openaimodel.New to the name of a deployment",
		},
		{
			"a model that Ollama has not pulled", "https://github.com/netease-youdao/QAnything/issues/555",
			openaimodel.Options{BaseURL: "http://localhost:11434/v1"}, 404,
			`{"error":{"message":"model \"m\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`,
			converse.CodeModelNotFound, "change the name in openaimodel.New, or run: ollama pull m",
		},
		{
			"a model of Ollama without tools", "https://github.com/FoundationAgents/OpenManus/issues/220",
			openaimodel.Options{BaseURL: "http://localhost:11434/v1"}, 400,
			`{"error":{"message":"registry.ollama.ai/library/qwen:4b does not support tools","type":"api_error","param":null,"code":null}}`,
			converse.CodeTools, "change the name in openaimodel.New to a model that can use tools",
		},
		{
			"vLLM without tools", "https://github.com/vllm-project/vllm/issues/9986", openaimodel.Options{BaseURL: compatible}, 400,
			`{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",` +
				`"type":"BadRequestError","param":null,"code":400}`,
			converse.CodeTools, "start the model's server with --enable-auto-tool-choice and the --tool-call-parser of the model",
		},
		{
			"OpenRouter without tools", "https://github.com/evalstate/fast-agent/issues/122",
			openaimodel.Options{BaseURL: "https://openrouter.ai/api/v1", APIKey: "k"}, 404,
			`{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: ` +
				`https://openrouter.ai/docs/provider-routing","code":404}}`,
			converse.CodeTools, "change the name in openaimodel.New to a model that can use tools",
		},
		{
			"quota", "https://github.com/ChatGPTNextWeb/NextChat/issues/3123", openaimodel.Options{APIKey: "k"}, 429,
			`{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota",` +
				`"param":null,"code":"insufficient_quota"}}`,
			converse.CodeQuota,
			"add credit at https://platform.openai.com/settings/organization/billing, or use another key: change openaimodel.Options.APIKey",
		},
		{
			"quota, without a code", "https://github.com/ayaka14732/ChatGPTAPIFree/issues/16", openaimodel.Options{APIKey: "k"}, 429,
			`{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota",` +
				`"param":null,"code":null}}`,
			converse.CodeQuota,
			"add credit at https://platform.openai.com/settings/organization/billing, or use another key: change openaimodel.Options.APIKey",
		},
		{
			"per minute at Google", "https://github.com/continuedev/continue/issues/9570",
			openaimodel.Options{BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", APIKey: "k"}, 429,
			`[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information on ` +
				`this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n* Quota exceeded for metric: ` +
				`generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10, model: m\nPlease retry in 20.04s.",` +
				`"status":"RESOURCE_EXHAUSTED"}}]`,
			"429", "",
		},
		{
			"too much at once", "https://platform.openai.com/docs/guides/error-codes", openaimodel.Options{APIKey: "k"}, 429,
			openAIError("Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM).", "", "rate_limit_exceeded"),
			"rate_limit_exceeded", "",
		},
		{
			"no credit, with a status of its own", "https://api-docs.deepseek.com/quick_start/error_codes",
			openaimodel.Options{BaseURL: "https://api.deepseek.com", APIKey: "k"}, 402,
			openAIError("Insufficient Balance", "", "invalid_request_error"),
			converse.CodeQuota, "add credit with the provider, or use another key: change openaimodel.Options.APIKey",
		},
		{
			"region", "https://github.com/home-assistant/core/issues/120072", openaimodel.Options{}, 403,
			`{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,` +
				`"type":"request_forbidden"}}`,
			converse.CodeRegion, "set openaimodel.Options.BaseURL to a provider that serves this country, or to a region of this one that does",
		},
		{
			"wrong key", "https://github.com/popjane/free_chatgpt_api/issues/3", openaimodel.Options{APIKey: "sk-wrong"}, 401,
			openAIError("Incorrect API key provided: sk-w***. You can find your API key at https://platform.openai.com/account/api-keys.", "",
				"invalid_api_key"),
			converse.CodeKey, "change openaimodel.Options.APIKey",
		},
		{
			"no key", "https://platform.openai.com/docs/guides/error-codes",
			openaimodel.Options{BaseURL: "https://llm.example/v1"}, 401, `{"detail":"Unauthorized"}`,
			converse.CodeKey, "set openaimodel.Options.APIKey",
		},
		{
			"wrong key at Google", "https://ai.google.dev/gemini-api/docs/troubleshooting",
			openaimodel.Options{BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", APIKey: "k"}, 400,
			`[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`,
			converse.CodeKey, "change openaimodel.Options.APIKey",
		},
		{
			"no images at DeepSeek", "https://github.com/1jehuang/jcode/issues/310", openaimodel.Options{BaseURL: compatible}, 400,
			openAIError("Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line "+
				"1 column 114708", "", "invalid_request_error"), converse.CodeImage, noImages,
		},
		{
			"no images at DeepSeek before", "https://github.com/browser-use/web-ui/issues/163", openaimodel.Options{BaseURL: compatible}, 422,
			`{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: data did not match any variant of ` +
				`untagged enum ChatCompletionRequestContent at line 1 column 18231"}}`, converse.CodeImage, noImages,
		},
		{
			"no images at DeepSeek first", "https://github.com/chatboxai/chatbox/issues/1740", openaimodel.Options{BaseURL: compatible}, 422,
			`{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[2]: invalid type: sequence, expected a ` +
				`string at line 1 column 2901"}}`, converse.CodeImage, noImages,
		},
		{
			"another wrong body at DeepSeek", "https://github.com/1jehuang/jcode/issues/310", openaimodel.Options{BaseURL: compatible}, 422,
			`{"error":{"message":"Failed to deserialize the JSON body into the target type: tools[0].type: unknown variant ` + "`custom`, expected " +
				"`function`" + ` at line 1 column 80","code":"invalid_request_error"}}`, "invalid_request_error", "",
		},
		{
			"an image that is not downloaded in time", "https://github.com/vercel/ai/issues/8857", openaimodel.Options{APIKey: "k"}, 400,
			openAIError("Timeout while downloading https://a.example/b.png.", "url", "invalid_value"), converse.CodeImage, noImages,
		},
		{
			"an image that is not found", "https://github.com/vercel/ai/issues/8857", openaimodel.Options{APIKey: "k"}, 400,
			openAIError("Error while downloading https://a.example/b.png. Upstream status code: 404.", "url", "invalid_value"), converse.CodeImage, noImages,
		},
		{
			"an image with a code", "https://github.com/riverscuomo/cuomputer/issues/95", openaimodel.Options{APIKey: "k"}, 400,
			openAIError("The picture is not there.", "", "invalid_image_url"), converse.CodeImage, noImages,
		},
		{
			"no images", "https://docs.vllm.ai/en/latest/features/multimodal_inputs.html", openaimodel.Options{BaseURL: compatible}, 400,
			`{"object":"error","message":"m is not a multimodal model","type":"BadRequestError","param":null,"code":400}`,
			converse.CodeImage, noImages,
		},
		{
			"wrong path", "https://github.com/ollama/ollama/issues/2474", openaimodel.Options{BaseURL: "http://localhost:11434"}, 404, "404 page not found",
			converse.CodeAddress, `set openaimodel.Options.BaseURL = "http://localhost:11434/v1", which is probably meant`,
		},
		{
			"no Responses", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
			openaimodel.Options{BaseURL: compatible, API: "responses"}, 404, `{"detail":"Not Found"}`,
			converse.CodeAddress, `set openaimodel.Options.API = "chat", as many servers have no Responses`,
		},
		{
			"a web server", "https://httpd.apache.org/docs/2.4/custom-error.html",
			openaimodel.Options{BaseURL: "https://llm.example/api/v1"}, 404, "<html><head><title>404 Not Found</title></head></html>",
			converse.CodeAddress, "change openaimodel.Options.BaseURL to where llm.example has the API",
		},
		{
			"a web page instead of an answer", "https://httpd.apache.org/docs/2.4/custom-error.html",
			openaimodel.Options{BaseURL: "https://llm.example"}, 200, "<!doctype html><title>Welcome</title>",
			converse.CodeAddress, `set openaimodel.Options.BaseURL = "https://llm.example/v1", which is probably meant`,
		},
		{
			"a proxy that is down", "https://nginx.org/en/docs/http/ngx_http_proxy_module.html",
			openaimodel.Options{BaseURL: "https://llm.example"}, 502, "<html>model not found</html>", "", "",
		},
		{
			"an error in the middle of an answer", "https://github.com/ChatGPTNextWeb/NextChat/issues/3123", openaimodel.Options{BaseURL: compatible}, 200,
			"data: {\"error\":{\"message\":\"The model `m` does not exist.\",\"type\":\"NotFoundError\",\"code\":404}}\n\n",
			converse.CodeModelNotFound, "change the name in openaimodel.New to a model that the server has",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "")
			o := test.options
			o.MaxRetries, o.HTTPClient = -1, &http.Client{Transport: answering{test.status, test.body}}
			model, err := openaimodel.New("m", &o)
			if err != nil {
				t.Fatal(err)
			}
			failed := refused(t, model)
			if failed.Code != test.code || failed.Advice != test.advice {
				t.Errorf("%s\ncode   %q, want %q\nadvice %q\nwant   %q", test.source, failed.Code, test.code, failed.Advice, test.advice)
			}
			if wait := test.status == 429 && failed.Code != converse.CodeQuota; failed.Retryable != wait && test.status != 502 {
				t.Errorf("retryable is %v", failed.Retryable)
			}
		})
	}
}

// TestAdviceOfAnthropic is the same for Messages.
func TestAdviceOfAnthropic(t *testing.T) {
	for _, test := range []struct {
		name, source string
		options      anthropicmodel.Options
		status       int
		body         string
		code, advice string
	}{
		{
			"credit", "https://github.com/anthropics/claude-code/issues/66314", anthropicmodel.Options{APIKey: "k"}, 400,
			anthropicError("invalid_request_error",
				"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
			converse.CodeQuota, "add credit at https://platform.claude.com/settings/billing, or use another key: change anthropicmodel.Options.APIKey",
		},
		{
			"spend limit", "https://github.com/anthropics/claude-code/issues/38035", anthropicmodel.Options{APIKey: "k"}, 400,
			anthropicError("invalid_request_error",
				"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."),
			converse.CodeQuota, "add credit at https://platform.claude.com/settings/billing, or use another key: change anthropicmodel.Options.APIKey",
		},
		{
			"wrong key", "https://github.com/abi/screenshot-to-code/issues/272", anthropicmodel.Options{APIKey: "k"}, 401,
			anthropicError("authentication_error", "invalid x-api-key"), converse.CodeKey, "change anthropicmodel.Options.APIKey",
		},
		{
			"no such model", "https://platform.claude.com/docs/en/api/errors", anthropicmodel.Options{}, 404,
			anthropicError("not_found_error", "model: claude-sonnet-9"), converse.CodeModelNotFound,
			"change the name in anthropicmodel.New to a model that the server has",
		},
		{
			"wrong path", "https://platform.claude.com/docs/en/api/errors", anthropicmodel.Options{BaseURL: "https://llm.example/v1", APIKey: "k"}, 404,
			anthropicError("not_found_error", "Not Found"), converse.CodeAddress,
			`set anthropicmodel.Options.BaseURL = "https://llm.example", which is probably meant`,
		},
		{
			"budget", "https://github.com/Sylinko/Everywhere/issues/410", anthropicmodel.Options{Thinking: "2048"}, 400,
			anthropicError("invalid_request_error",
				`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`),
			converse.CodeParameter, `set anthropicmodel.Options.Thinking = "adaptive"`,
		},
		{
			"adaptive", "https://github.com/docker/docker-agent/issues/3362", anthropicmodel.Options{Thinking: "adaptive"}, 400,
			anthropicError("invalid_request_error", "adaptive thinking is not supported on this model"),
			converse.CodeParameter, `set anthropicmodel.Options.Thinking = "4096", a number of tokens, as this model needs a budget`,
		},
		{
			"a model that always thinks", "https://platform.claude.com/docs/en/models/opus-5-5/migration-guide", anthropicmodel.Options{Thinking: "off"}, 400,
			anthropicError("invalid_request_error",
				`"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`),
			converse.CodeParameter, "remove anthropicmodel.Options.Thinking, as this model always thinks; a lower Effort (reasoning_effort in a configuration) makes it think less",
		},
		{
			"a model that thinks between calls", "https://platform.claude.com/docs/en/models/sonnet-5-5/migration-guide", anthropicmodel.Options{Thinking: "off"}, 400,
			anthropicError("invalid_request_error", `"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" to turn off up-front thinking.`),
			converse.CodeParameter, `set anthropicmodel.Options.Thinking = "between_tools"`,
		},
		{
			"forced calls", "https://platform.claude.com/docs/en/models/fable-5-1/migration-guide", anthropicmodel.Options{ToolChoice: "any"}, 400,
			anthropicError("invalid_request_error", `tool_choice: type "tool" and "any" are not supported for this model.`),
			converse.CodeParameter, "remove anthropicmodel.Options.ToolChoice",
		},
		{
			"effort", "https://github.com/anthropics/claude-code/issues/30010", anthropicmodel.Options{Effort: "high"}, 400,
			anthropicError("invalid_request_error", "This model does not support the effort parameter."),
			converse.CodeParameter, "remove anthropicmodel.Options.Effort",
		},
		{
			"temperature and top_p", "https://github.com/cloud-apim/otoroshi-llm-extension/issues/140",
			anthropicmodel.Options{Temperature: &half, TopP: &half}, 400,
			anthropicError("invalid_request_error", "`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
			converse.CodeParameter, "remove anthropicmodel.Options.Temperature",
		},
		{
			"temperature", "https://github.com/szczyglis-dev/py-gpt/pull/184", anthropicmodel.Options{Temperature: &half}, 400,
			anthropicError("invalid_request_error", "`temperature` is deprecated for this model."), converse.CodeParameter,
			"remove anthropicmodel.Options.Temperature",
		},
		{
			"too many tokens", "https://platform.claude.com/docs/en/about-claude/models/overview", anthropicmodel.Options{MaxTokens: 100000}, 400,
			anthropicError("invalid_request_error", "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5"),
			converse.CodeParameter, "set anthropicmodel.Options.MaxTokens = 64000",
		},
		{
			"a compatible server without caching", "https://platform.claude.com/docs/en/api/errors",
			anthropicmodel.Options{BaseURL: "http://localhost:8000", APIKey: "k"}, 400,
			anthropicError("invalid_request_error", "cache_control: Extra inputs are not permitted"), converse.CodeParameter,
			"set anthropicmodel.Options.NoCache = true",
		},
		{
			"a large image", "https://github.com/anthropics/claude-code/issues/4778", anthropicmodel.Options{}, 400,
			anthropicError("invalid_request_error",
				"messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"),
			converse.CodeImage,
			"set anthropicmodel.Options.NoImages = true, so that the model gets a line of text in place of each image and PDF file, or send others",
		},
		{
			"an image, by its place", "https://github.com/HiveNexus/HiveChat/issues/39", anthropicmodel.Options{}, 400,
			anthropicError("invalid_request_error", "messages.0.content.1.image.source.base64: invalid base64 data"),
			converse.CodeImage,
			"set anthropicmodel.Options.NoImages = true, so that the model gets a line of text in place of each image and PDF file, or send others",
		},
		{
			"region at Bedrock", "https://github.com/aws-samples/generative-bi-using-rag/issues/361",
			anthropicmodel.Options{BaseURL: "https://bedrock.example", APIKey: "k"}, 400,
			`{"message":"Access to Anthropic models is not allowed from unsupported countries, regions, or territories. Please refer to ` +
				`https://www.anthropic.com/supported-countries for more information."}`,
			converse.CodeRegion, "set anthropicmodel.Options.BaseURL to a provider that serves this country, or to a region of this one that does",
		},
		{
			"a model of Bedrock without a profile", "https://github.com/cline/cline/issues/1952",
			anthropicmodel.Options{BaseURL: "https://bedrock.example", APIKey: "k"}, 400,
			`{"message":"Invocation of model ID anthropic.claude-3-7-sonnet-20250219-v1:0 with on-demand throughput isn’t supported. Retry ` +
				`your request with the ID or ARN of an inference profile that contains this model."}`,
			converse.CodeModelNotFound, "change the name in anthropicmodel.New to the ID of an inference profile, such as us.claude-m",
		},
		{
			"overloaded", "https://platform.claude.com/docs/en/api/errors", anthropicmodel.Options{}, 529,
			anthropicError("overloaded_error", "Overloaded"), "overloaded_error", "",
		},
		{
			"the order of messages", "https://platform.claude.com/docs/en/api/errors", anthropicmodel.Options{}, 400,
			anthropicError("invalid_request_error",
				"messages.0.content.0.thinking: each `thinking` block must contain a signature"), "invalid_request_error", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("ANTHROPIC_API_KEY", "")
			o := test.options
			o.MaxRetries, o.HTTPClient = -1, &http.Client{Transport: answering{test.status, test.body}}
			model, err := anthropicmodel.New("claude-m", &o)
			if err != nil {
				t.Fatal(err)
			}
			if failed := refused(t, model); failed.Code != test.code || failed.Advice != test.advice {
				t.Errorf("%s\ncode   %q, want %q\nadvice %q\nwant   %q", test.source, failed.Code, test.code, failed.Advice, test.advice)
			}
		})
	}
}

// TestKeyOfTheEnvironment: an error names the variable that the key came from, and not the
// key.
func TestKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-4711")
	client := &http.Client{Transport: answering{401, anthropicError("authentication_error", "invalid x-api-key sk-ant-4711")}}
	model, err := anthropicmodel.New("claude-m", &anthropicmodel.Options{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	want := "model: invalid x-api-key [secret] (status 401, code invalid_api_key)\nchange the variable ANTHROPIC_API_KEY, which has the key"
	if failed := refused(t, model); failed.Error() != want {
		t.Errorf("got  %q\nwant %q", failed.Error(), want)
	}
}

// TestWrongOptions: what can only fail is refused before a request is sent.
func TestWrongOptions(t *testing.T) {
	for _, test := range []struct {
		option, says string
		err          error
	}{
		{"APIKey", "a key of Anthropic", second(openaimodel.New("m", &openaimodel.Options{APIKey: "sk-ant-api03-1"}))},
		{"APIKey", "a key of OpenAI", second(anthropicmodel.New("m", &anthropicmodel.Options{APIKey: "sk-proj-1"}))},
		{"APIKey", "a key of OpenRouter", second(openaimodel.New("m", &openaimodel.Options{APIKey: "sk-or-v1-1"}))},
		{"BaseURL", "/chat/completions", second(openaimodel.New("m", &openaimodel.Options{BaseURL: "http://localhost/v1/chat/completions"}))},
		{"BaseURL", "/v1/messages", second(anthropicmodel.New("m", &anthropicmodel.Options{BaseURL: "http://localhost/v1/messages"}))},
		{"NoStreamUsage", "set API to chat", second(openaimodel.New("m", &openaimodel.Options{NoStreamUsage: true}))},
		{"MaxTokens", "16 or more", second(openaimodel.New("m", &openaimodel.Options{MaxTokens: 8}))},
		{"ReasoningSummary", "set API to responses", second(openaimodel.New("m", &openaimodel.Options{API: "chat", ReasoningSummary: "auto"}))},
		{"Thinking", "less than MaxTokens", second(anthropicmodel.New("m", &anthropicmodel.Options{Thinking: "40000"}))},
	} {
		var named interface{ Option() string }
		if !errors.As(test.err, &named) || named.Option() != test.option || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.option, test.err, test.says)
		}
	}
	for _, err := range []error{
		second(openaimodel.New("m", &openaimodel.Options{BaseURL: "http://localhost/v1", APIKey: "sk-ant-1"})),
		second(openaimodel.New("m", &openaimodel.Options{APIKey: "sk-1"})),
		second(anthropicmodel.New("m", &anthropicmodel.Options{APIKey: "sk-ant-1"})),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func second[M any](_ M, err error) error { return err }
