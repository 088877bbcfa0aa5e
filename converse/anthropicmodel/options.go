// SPDX-License-Identifier: Apache-2.0

package anthropicmodel

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

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"go.uber.org/zap"
)

// keyName is the variable with Anthropic's key.
const keyName = "ANTHROPIC_API_KEY"

const defaultBaseURL = "https://api.anthropic.com"

// Options are the options of a model. A nil pointer and the zero value of a field mean the
// default. Pointer fields are sent only if they are set, because zero is a valid value.
type Options struct {
	// BaseURL is the URL of the API without /v1/messages, as the SDK takes it; default
	// "https://api.anthropic.com". The scheme is http or https. No environment variable
	// changes it.
	BaseURL string
	// APIKey is sent as x-api-key. If it is empty and BaseURL is Anthropic's, it is read
	// from ANTHROPIC_API_KEY. Other servers only get a key that is set here. New does not
	// report a missing key; the first exchange then fails with [converse.CodeKey].
	APIKey string
	// Headers are sent with each request, for example anthropic-beta, and replace headers of
	// anthropic-sdk-go with the same name.
	Headers map[string]string

	// NoStream requests the answer in one piece. All deltas then come together. The server
	// may refuse this for a large MaxTokens.
	NoStream bool

	// MaxTokens limits the tokens of one answer, thinking included. The API requires a
	// limit; the default is 32,000, or what an older model allows. If a request has a limit
	// too, the lower one is sent.
	MaxTokens int
	// Temperature and TopP control the randomness of the sampling. A temperature in a
	// request replaces both, and is left out while the model thinks.
	Temperature, TopP *float64
	// Stop are texts that end the answer. The Stop of a request replaces them. The API
	// takes no text that is only white space.
	Stop []string
	// ToolChoice is auto, any, none or the name of a tool that must be called. Empty leaves
	// it to the server, which means auto.
	ToolChoice string
	// ParallelToolCalls allows or forbids several calls in one answer; nil allows them.
	ParallelToolCalls *bool
	// Thinking is "adaptive", "off", or a budget of at least 1024 tokens, written as a number
	// such as "8192", for models that require one. "between_tools" is for models that do not
	// take "off", such as Claude Sonnet 5.5: they think only between calls. Empty means the
	// model's default.
	Thinking string
	// Effort is "low", "medium", "high", "xhigh" or "max". Empty means the model's default.
	Effort string
	// OutputSchema is a JSON Schema that answers follow.
	OutputSchema json.RawMessage
	// ServiceTier is auto or standard_only.
	ServiceTier string
	// HostedTools are tools that the server itself runs, in the form of the API, such as
	// {"type": "web_search_20250305", "name": "web_search"}. What they did is structured
	// content of the answer. Nothing of this program approves, limits or audits it.
	HostedTools []map[string]any
	// NoCache leaves cache_control out, so that the server does not cache the prompt.
	NoCache bool
	// ExtraBody holds additional members of the request body. They replace members of the
	// same name from other options or from a request. The names model, messages, system,
	// tools, stream and max_tokens are not allowed.
	ExtraBody map[string]any

	// NoImages is for models that do not accept images: a line of text replaces each image.
	NoImages bool
	// MaxTools is how many tools a request may have, and MaxDescription how many characters
	// each description may have; 0 and negative numbers mean no limit.
	MaxTools, MaxDescription int

	// MaxRetries is how often a failed exchange is retried, including streams that broke
	// off before they yielded anything; default 2, negative means never. The waits are
	// the time that the server requests, up to two minutes, otherwise half a second,
	// doubling up to 8 seconds, and randomly up to a quarter shorter.
	MaxRetries int
	// ResponseTimeout limits the wait for the response header, and IdleTimeout the wait for
	// more of the body; default 10 and 5 minutes. For twelve times IdleTimeout the server
	// may send nothing but pings. A negative value means no limit.
	ResponseTimeout, IdleTimeout time.Duration
	// MaxEventBytes limits one event of a stream, and MaxAnswerBytes a whole response;
	// default 8 MiB and 64 MiB.
	MaxEventBytes, MaxAnswerBytes int

	// Provider names the operator of the server in traces and metrics; default anthropic.
	Provider string
	// TraceHeaders sends the trace context with each request (W3C Trace Context).
	TraceHeaders bool

	// Place describes an option for the advice of errors; see openaimodel.Options.
	Place func(option string, value any) (where, what string)

	// HTTPClient sends the requests. The default has its own connections, which
	// [Model.Close] closes. A given client is copied, and follows redirects only within the
	// origin of BaseURL. Its Timeout, if set, cuts long answers off.
	HTTPClient *http.Client
	// RequestOptions are options of anthropic-sdk-go for a server that needs more than a
	// key; its packages bedrock and vertex have some. They are applied last, so that their
	// middleware is closest to the connection. BaseURL must then name the server, and no
	// key is read from the environment.
	RequestOptions []option.RequestOption
	// Logger receives log entries in addition to the events; nil logs nothing.
	Logger *zap.Logger
}

// answerTokens are the limits of older models for the tokens of an answer, by the beginning
// of the name (platform.claude.com, Models overview, looked up on 2026-11-22).
var answerTokens = []struct {
	prefix string
	tokens int
}{
	{"claude-3-5-", 8192}, {"claude-3-7-", 64000}, {"claude-3-", 4096},
}

// defaultMaxTokens is the limit for other models, all of which allow it.
const defaultMaxTokens = 32000

// settle returns the options with defaults filled in, and the parsed base URL.
func settle(name string, o Options) (Options, *url.URL, error) {
	base, err := modelapi.ParseBase(cmp.Or(o.BaseURL, defaultBaseURL))
	if err != nil {
		return o, nil, err
	}
	if o.ExtraBody, err = modelapi.PlainBody(o.ExtraBody); err != nil {
		return o, nil, err
	}
	o.Headers, o.Stop, o.RequestOptions = maps.Clone(o.Headers), slices.Clone(o.Stop), slices.Clone(o.RequestOptions)
	if o.APIKey == "" && len(o.RequestOptions) == 0 && base.Scheme == "https" && strings.EqualFold(base.Hostname(), "api.anthropic.com") {
		o.APIKey = os.Getenv(keyName)
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = defaultMaxTokens
		for _, older := range answerTokens {
			if strings.HasPrefix(name, older.prefix) {
				o.MaxTokens = older.tokens
				break
			}
		}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, base, o.check(base)
}

// members has the changes that leave members out of a request.
var members = map[string]modelapi.Change{
	"temperature": {Option: "Temperature"}, "top_p": {Option: "TopP"}, "stop_sequences": {Option: "Stop"}, "tool_choice": {Option: "ToolChoice"},
	"thinking": {Option: "Thinking"}, "output_config": {Option: "Effort"}, "output_config.effort": {Option: "Effort"}, "output_config.format": {Option: "OutputSchema"},
	"service_tier": {Option: "ServiceTier"}, "cache_control": {Option: "NoCache", Value: true}, "stream": {Option: "NoStream", Value: true},
}

// check returns all problems of the options as one error.
func (o *Options) check(base *url.URL) error {
	var wrong modelapi.Problems
	wrong.Server(base, o.APIKey, o.Headers)
	wrong.Negative(map[string]int{"MaxTokens": o.MaxTokens, "MaxEventBytes": o.MaxEventBytes, "MaxAnswerBytes": o.MaxAnswerBytes})
	wrong.Reserved(o.ExtraBody, "model", "messages", "system", "tools", "stream")
	wrong.Limit(o.ExtraBody, "max_tokens")
	if o.BaseURL == "" && len(o.RequestOptions) > 0 {
		wrong.Add("BaseURL", "BaseURL is not set; with RequestOptions it must name the server, such as https://bedrock-runtime.us-east-1.amazonaws.com")
	}
	for name, value := range map[string]*float64{"Temperature": o.Temperature, "TopP": o.TopP} {
		if value != nil && (math.IsNaN(*value) || *value < 0 || *value > 1) {
			wrong.Add(name, "%s is %v; it must be from 0 to 1", name, *value)
		}
	}
	if strings.ContainsFunc(o.APIKey, unicode.IsControl) {
		wrong.Add("APIKey", "APIKey holds a line end, or another character that cannot be sent")
	}
	o.checkThinking(wrong.Add)
	if len(o.OutputSchema) > 0 && !json.Valid(o.OutputSchema) {
		wrong.Add("OutputSchema", "OutputSchema is not valid JSON")
	}
	if slices.ContainsFunc(o.Stop, isBlank) {
		wrong.Add("Stop", "Stop has a text that is only white space, which the API does not take")
	}
	for i, tool := range o.HostedTools {
		if kind, _ := tool["type"].(string); kind == "" || kind == "custom" {
			wrong.Add("HostedTools", "HostedTools[%d] has no type of a tool that the server runs, such as web_search_20250305", i)
		}
	}
	return wrong.Err()
}
