// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/consort-go/consort/converse/internal/modelapi"
	"go.uber.org/zap"
)

// The values of Options.API once it is settled.
const (
	apiChat      = "chat"
	apiResponses = "responses"
)

// keyName is the variable with OpenAI's key.
const keyName = "OPENAI_API_KEY"

const defaultBaseURL = "https://api.openai.com/v1"

// Options are the options of a model. A nil pointer and the zero value of a field mean
// the default. Pointer fields are sent only if they are set, because zero is a valid
// value.
type Options struct {
	// BaseURL is the URL of the API without /responses or /chat/completions; default
	// "https://api.openai.com/v1". The scheme is http or https. No environment variable
	// changes it.
	BaseURL string
	// API is responses, chat or auto. Auto, the default, means Responses for OpenAI and
	// for Azure, except at a URL of a deployment, and Chat Completions elsewhere.
	API string
	// APIKey is sent as a bearer token. If it is empty and BaseURL is OpenAI's, it is
	// read from OPENAI_API_KEY. Other servers only get a key that is set here. New does not
	// report a missing key, because some servers need none; the first exchange then fails
	// with [converse.CodeKey].
	APIKey string
	// Organization and Project are sent in OpenAI's headers of these names. They are
	// never read from the environment.
	Organization, Project string
	// Headers are sent with each request and replace headers of openai-go with the same
	// name.
	Headers map[string]string

	// NoStream requests the answer in one piece. All deltas then come together.
	NoStream bool
	// NoStreamUsage omits stream_options, for servers that reject it. The usage of a
	// streamed exchange is then usually unknown. Only for Chat Completions; with Responses,
	// New returns an error.
	NoStreamUsage bool

	// Temperature and TopP control the randomness of the sampling. A temperature in a
	// request takes precedence.
	Temperature, TopP *float64
	// MaxTokens limits the tokens of one answer; 0 leaves it to the server. If a request
	// has a limit too, the lower one is sent. Responses requires at least 16.
	MaxTokens int
	// MaxTokensField is the name of the field for MaxTokens. The default is
	// max_completion_tokens for OpenAI and Azure, where newer models require it, and
	// max_tokens elsewhere, where some servers know no other. Responses has a name of its
	// own and ignores this one.
	MaxTokensField string
	// Stop are texts at which the model stops. The Stop of a request replaces them. Only
	// for Chat Completions; with Responses, New returns an error.
	Stop []string
	// Seed requests the same answer for the same request, as far as the server supports
	// it. Only for Chat Completions; with Responses, New returns an error.
	Seed *int64
	// ToolChoice is auto, none, required or the name of a tool that must be called. Empty
	// leaves it to the server, which means auto. A model that must call a tool every time
	// stops only at the limits of the conversation. If a request forbids invocations, the
	// value none is sent.
	ToolChoice string
	// ParallelToolCalls allows or forbids several calls in one answer. Some models and
	// servers reject the field, whatever its value.
	ParallelToolCalls *bool
	// ReasoningEffort is how much the model thinks: none, minimal, low, medium, high or
	// another value that the server knows.
	ReasoningEffort string
	// ReasoningSummary asks for summaries of the reasoning, which arrive as deltas: auto,
	// concise or detailed. Only Responses has them.
	ReasoningSummary string
	// ServiceTier is the processing tier, such as auto, default, flex or priority.
	ServiceTier string
	// PromptCacheKey replaces the key under which the server looks for the cached
	// beginning of a prompt. By default, with Responses of OpenAI and Azure, each
	// conversation has its own.
	PromptCacheKey string
	// HostedTools are tools that the server itself runs, in the form of the Responses API,
	// such as {"type": "web_search"}. Their calls and results are recorded as structured
	// content of the answer. Approvals, limits, budgets and the audit trail do not cover
	// them. They are not offered for summaries and sampling.
	HostedTools []map[string]any
	// ResponseFormat requests answers in JSON.
	ResponseFormat *ResponseFormat
	// ExtraBody holds additional members of the request body, for fields without an
	// option and for other servers. They replace members of the same name from other
	// options or from a request. If they include max_tokens or max_completion_tokens, Chat
	// Completions does not send the limit of a request. The names model, messages, input,
	// tools and stream are not allowed, nor is max_output_tokens with Responses.
	ExtraBody map[string]any

	// SupervisorRole is the role of Supervisor canisters; default system, which OpenAI
	// treats as developer for models that require it.
	SupervisorRole string
	// NoImages is for models that do not accept images: a line of text replaces each
	// image.
	NoImages bool
	// Audio is for models that accept audio, which most reject. WAV and MP3 are sent. If
	// Audio is false, a line of text replaces each piece of audio. Only for Chat
	// Completions; with Responses, New returns an error.
	Audio bool
	// InlineRefs inlines local references in tool schemas. The default is to do so for
	// servers other than OpenAI's and Azure's, many of which do not follow references.
	InlineRefs *bool

	// MaxTools is how many tools a request may have, and MaxDescription how many
	// characters each description may have. A conversation sets surplus tools aside. A
	// longer description is cut and says so. The default is the known limit of the
	// server's host, such as 128 and 1024 for OpenAI; negative means no limit.
	MaxTools, MaxDescription int

	// MaxRetries is how often a failed exchange is retried, including streams that broke
	// off before they yielded anything; default 2, negative means never. The waits are
	// the time that the server requests, up to two minutes, otherwise half a second,
	// doubling up to 8 seconds, and randomly up to a quarter shorter.
	MaxRetries int
	// ResponseTimeout limits the wait for the response header, and IdleTimeout the wait
	// for more of the body; default 10 and 5 minutes. Models can be silent while they
	// think. For twelve times IdleTimeout the server may send nothing but pings. A
	// negative value means no limit.
	ResponseTimeout, IdleTimeout time.Duration
	// MaxEventBytes limits one event of a stream, and MaxAnswerBytes a whole response;
	// default 8 MiB and 64 MiB.
	MaxEventBytes, MaxAnswerBytes int

	// Provider names the operator of the server in traces and metrics: a name of
	// OpenTelemetry's conventions for gen_ai.provider.name, such as openai, or another
	// name. The default depends on the host if the conventions name its provider, and is
	// openai_compatible otherwise.
	Provider string
	// TraceHeaders sends the trace context with each request (W3C Trace Context:
	// traceparent and tracestate), for a server that takes part in traces. It is off by
	// default, because the operator of the server could see which requests belong
	// together, and could read values that others wrote into tracestate.
	TraceHeaders bool

	// Place, if not nil, replaces the name of an option in [converse.ModelError.Advice]. It
	// returns where the option is set, for example consort.toml:7, and how to write it, for
	// example api = "responses". The option is the name of a field, ExtraBody.NAME, or Name
	// for the name of the model. The value is the recommended one, or nil if none is
	// certain. By default, Advice names the Go field.
	Place func(option string, value any) (where, what string) `json:"-"`

	// HTTPClient sends the requests. The default has its own connections, which
	// [Model.Close] closes. A given client is copied, and follows redirects only within
	// the origin of BaseURL. Its Timeout, if set, cuts long answers off.
	HTTPClient *http.Client
	// Logger receives log entries in addition to the events; nil logs nothing.
	Logger *zap.Logger
}

// ResponseFormat requests answers in JSON.
type ResponseFormat struct {
	// Name is the name of the schema, which the model sees; default answer.
	Name string
	// Description explains the purpose of the answer; may be empty.
	Description string
	// Schema is the JSON Schema of the answer. If it is empty, the answer is any JSON
	// object, and the instructions must also ask for JSON.
	Schema json.RawMessage
	// Strict makes the server follow Schema exactly. OpenAI supports this only for
	// schemas of a restricted form.
	Strict bool
}

// settle returns the options with defaults filled in, and the parsed base URL.
func settle(o Options) (Options, *url.URL, error) {
	base, err := modelapi.ParseBase(cmp.Or(o.BaseURL, defaultBaseURL))
	if err != nil {
		return o, nil, err
	}
	if o.ExtraBody, err = modelapi.PlainBody(o.ExtraBody); err != nil {
		return o, nil, err
	}
	o.Headers, o.Stop = maps.Clone(o.Headers), slices.Clone(o.Stop)
	if o.APIKey == "" && isOpenAI(base) {
		o.APIKey = os.Getenv(keyName)
	}
	modern := isOpenAI(base) || isAzure(base)
	if o.API == "" || o.API == "auto" {
		o.API = DefaultAPI(base)
	}
	if o.MaxTokensField == "" {
		o.MaxTokensField = "max_tokens"
		if modern {
			o.MaxTokensField = "max_completion_tokens"
		}
	}
	if o.InlineRefs == nil {
		inline := !modern
		o.InlineRefs = &inline
	}
	o.SupervisorRole = cmp.Or(o.SupervisorRole, "system")
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, base, o.check(base)
}

// members returns the changes that leave members out of the requests of an API.
func members(api string) map[string]modelapi.Change {
	changes := map[string]modelapi.Change{
		"temperature": {Option: "Temperature"}, "top_p": {Option: "TopP"}, "tool_choice": {Option: "ToolChoice"},
		"parallel_tool_calls": {Option: "ParallelToolCalls"}, "service_tier": {Option: "ServiceTier"},
		"prompt_cache_key": {Option: "PromptCacheKey"}, "stream": {Option: "NoStream", Value: true},
	}
	if api == apiResponses {
		maps.Copy(changes, map[string]modelapi.Change{
			"max_output_tokens": {Option: "MaxTokens"}, "text": {Option: "ResponseFormat"},
			"reasoning": {Option: "ReasoningEffort"}, "reasoning.effort": {Option: "ReasoningEffort"}, "reasoning.summary": {Option: "ReasoningSummary"},
			"store": {Option: "API", Value: apiChat}, "include": {Option: "API", Value: apiChat},
		})
		return changes
	}
	maps.Copy(changes, map[string]modelapi.Change{
		"max_tokens": {Option: "MaxTokensField", Value: "max_completion_tokens"}, "max_completion_tokens": {Option: "MaxTokensField", Value: "max_tokens"},
		"stop": {Option: "Stop"}, "seed": {Option: "Seed"}, "reasoning_effort": {Option: "ReasoningEffort"},
		"response_format": {Option: "ResponseFormat"}, "stream_options": {Option: "NoStreamUsage", Value: true},
	})
	return changes
}

// check returns all problems of the options as one error.
func (o *Options) check(base *url.URL) error {
	var wrong modelapi.Problems
	wrong.Server(base, o.APIKey, o.Headers)
	wrong.Negative(map[string]int{"MaxTokens": o.MaxTokens, "MaxEventBytes": o.MaxEventBytes, "MaxAnswerBytes": o.MaxAnswerBytes})
	wrong.Reserved(o.ExtraBody, "model", "messages", "input", "tools", "stream")
	for name, value := range map[string]*float64{"Temperature": o.Temperature, "TopP": o.TopP} {
		if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0) {
			wrong.Add(name, "%s is %v; it must be a number of 0 or more", name, *value)
		}
	}
	for name, value := range map[string]string{"APIKey": o.APIKey, "Organization": o.Organization, "Project": o.Project} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			wrong.Add(name, "%s contains a line break or another character that cannot be sent", name)
		}
	}
	if f := o.ResponseFormat; f != nil && len(f.Schema) > 0 && !json.Valid(f.Schema) {
		wrong.Add("ResponseFormat", "ResponseFormat.Schema is not valid JSON")
	}
	if o.API == apiResponses {
		wrong.Limit(o.ExtraBody, "max_output_tokens")
	}
	o.checkAPI(wrong.Add)
	return wrong.Err()
}

// checkAPI adds the options that the API does not have. Nothing is left out silently.
func (o *Options) checkAPI(add func(option, format string, args ...any)) {
	lacks := func(api, other string, options map[string]bool) {
		for option, set := range options {
			if set {
				add(option, "%s is set, which the %s API does not have; remove it, or set API to %s", option, api, other)
			}
		}
	}
	switch o.API {
	case apiResponses:
		lacks("Responses", apiChat, map[string]bool{
			"Stop": len(o.Stop) > 0, "Seed": o.Seed != nil, "Audio": o.Audio, "NoStreamUsage": o.NoStreamUsage,
		})
		if o.MaxTokens > 0 && o.MaxTokens < minOutputTokens {
			add("MaxTokens", "MaxTokens is %d; the Responses API takes %d or more", o.MaxTokens, minOutputTokens)
		}
		if include, given := o.ExtraBody["include"]; given {
			if _, list := include.([]any); !list {
				add("ExtraBody", "ExtraBody[\"include\"] is not a list")
			}
		}
		for i, tool := range o.HostedTools {
			if kind, _ := tool["type"].(string); !hostedTypes[kind] {
				add("HostedTools", "HostedTools[%d] has no type of a tool that the server runs, such as web_search", i)
			}
		}
	case apiChat:
		lacks("Chat Completions", apiResponses, map[string]bool{"HostedTools": len(o.HostedTools) > 0, "ReasoningSummary": o.ReasoningSummary != ""})
	default:
		add("API", "API is %q; it must be auto, responses or chat", o.API)
	}
}

// hostedTypes are the types of tools that OpenAI runs by itself (API reference, Create a
// model response, tools).
var hostedTypes = map[string]bool{
	"web_search": true, "web_search_preview": true, "file_search": true, "code_interpreter": true, "image_generation": true, "mcp": true,
}

// DefaultAPI returns what Options.API means by default for a base URL: responses or chat.
func DefaultAPI(base *url.URL) string {
	azure := isAzure(base) && strings.Contains(base.Path, "/openai") && !strings.Contains(base.Path, "/deployments/")
	if isOpenAI(base) || azure {
		return apiResponses
	}
	return apiChat
}

// isOpenAI reports whether a URL belongs to OpenAI itself, in any of its regions.
func isOpenAI(base *url.URL) bool {
	host := strings.ToLower(base.Hostname())
	return base.Scheme == "https" && (host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com"))
}

// isAzure reports whether a URL belongs to OpenAI's models on Azure.
func isAzure(base *url.URL) bool {
	host := strings.ToLower(base.Hostname())
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com") || strings.HasSuffix(host, ".cognitiveservices.azure.com")
}
