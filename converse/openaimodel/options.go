// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"
)

// The defaults of [Options].
const (
	defaultBaseURL         = "https://api.openai.com/v1"
	defaultMaxRetries      = 2
	defaultResponseTimeout = 10 * time.Minute
	defaultIdleTimeout     = 5 * time.Minute
	defaultMaxEventBytes   = 8 << 20
	defaultMaxAnswerBytes  = 64 << 20
)

// Options are the choices of a model. Nil, and the zero value of each field,
// mean the default that the field names. Fields that are pointers are sent
// only when they are set, as their zero means something.
type Options struct {
	// BaseURL is where the API is, up to what stands before
	// /chat/completions; default "https://api.openai.com/v1". It is http or https. No
	// environment variable changes it.
	BaseURL string
	// APIKey is sent as a bearer token. If it is empty and BaseURL is
	// OpenAI's, it comes from OPENAI_API_KEY; a server elsewhere gets only
	// the key that is given here.
	APIKey string
	// Organization and Project are sent as OpenAI's headers of these names.
	// They are never taken from the environment.
	Organization, Project string
	// Headers are sent with each request, in place of the SDK's own of the
	// same name.
	Headers map[string]string

	// NoStream asks for the answer in one piece. Deltas then come all at once.
	NoStream bool
	// NoStreamUsage leaves out stream_options, for servers that refuse it; the
	// usage of a streamed exchange is then mostly not known.
	NoStreamUsage bool

	// Temperature and TopP choose how bold the sampling is. A request's own
	// temperature stands in place of this one.
	Temperature, TopP *float64
	// MaxTokens bounds the tokens of one answer; 0 leaves it to the server. Of
	// it and a request's own bound, the lesser is sent.
	MaxTokens int
	// MaxTokensField is the field for MaxTokens. The default is
	// max_completion_tokens for OpenAI and Azure, where the newer models
	// insist on it, and max_tokens elsewhere, where some servers know no other.
	MaxTokensField string
	// Stop are texts at which the model stops. Those of a request stand in
	// their place.
	Stop []string
	// Seed asks for the same answer to the same request, as far as the server
	// can.
	Seed *int64
	// ToolChoice is auto, none, required or the name of a tool that must be
	// called; empty leaves it to the server, which means auto. Mind that a
	// model that must call a tool every time ends only at the limits of the
	// conversation. It is none where the request asks for no invocations.
	ToolChoice string
	// ParallelToolCalls allows or forbids several calls in one answer. Some
	// models and servers refuse the field, whatever its value.
	ParallelToolCalls *bool
	// ReasoningEffort is how much the model thinks: none, minimal, low,
	// medium, high or what else the server knows.
	ReasoningEffort string
	// ResponseFormat asks for answers in JSON.
	ResponseFormat *ResponseFormat
	// ExtraBody are further members of the request's body, for fields that are
	// not here and for what other servers know. They stand in place of a
	// member of the same name that the other options, or a request, would
	// give; with max_tokens or max_completion_tokens among them, a request's
	// bound is not sent at all. The names
	// model, messages, tools and stream cannot be given.
	ExtraBody map[string]any

	// SupervisorRole is the role of Supervisor canisters; default system,
	// which OpenAI takes as developer where a model wants that.
	SupervisorRole string
	// NoImages is for models that cannot see: a line stands for each image.
	NoImages bool
	// Audio is for models that can hear, which most refuse to do: WAV and MP3
	// are sent. Otherwise a line stands for each piece of sound.
	Audio bool
	// InlineRefs says whether local references in tool schemas are written
	// out. The default is to do it for servers other than OpenAI's and
	// Azure's, many of which do not follow them.
	InlineRefs *bool

	// MaxTools is how many tools a request may have, and MaxDescription how many
	// characters the description of each: a conversation sets aside the tools that
	// are too many, and a longer description is cut, and says so. The default is
	// what is known of the server by its host, such as 128 and 1024 for OpenAI;
	// negative is no limit.
	MaxTools, MaxDescription int

	// MaxRetries is how often a failed exchange is tried again, counting
	// broken streams that had not said anything yet; default 2, negative
	// means never. The waits are those of the SDK: what the server asks for up
	// to two minutes, else half a second, doubling up to 8 seconds.
	MaxRetries int
	// ResponseTimeout bounds the wait for the head of a response, and
	// IdleTimeout the wait for more of its body; default 10 and 5 minutes.
	// Models think in silence. A negative value is no bound.
	ResponseTimeout, IdleTimeout time.Duration
	// MaxEventBytes bounds one event of a stream, and MaxAnswerBytes a whole
	// response; default 8 MiB and 64 MiB.
	MaxEventBytes, MaxAnswerBytes int

	// Provider is who runs the server, in traces and measurements: a name of
	// OpenTelemetry's conventions for gen_ai.provider.name, such as openai, or
	// another. The default is known by the host for those whom the conventions
	// name, and is openai_compatible elsewhere.
	Provider string
	// TraceHeaders sends the context of the trace with each request (W3C Trace
	// Context: traceparent and tracestate), for a server that takes part in
	// traces. The default is not to: whoever runs the server could tell which
	// requests belong together, and reads what others wrote into tracestate.
	TraceHeaders bool

	// HTTPClient sends the requests. The default has its own connections,
	// which [Model.Close] frees. A client that is given is copied, and follows
	// redirections only within the origin of BaseURL. Its Timeout, if any,
	// cuts long answers off.
	HTTPClient *http.Client
	// Logger takes what is worth knowing beside the events; nil is silent.
	Logger *zap.Logger
}

// ResponseFormat asks for answers that are JSON.
type ResponseFormat struct {
	// Name names the schema to the model; default answer.
	Name string
	// Description says what the answer is for; may be empty.
	Description string
	// Schema is the JSON Schema of the answer. If it is empty the answer is
	// any JSON object, and the instructions must ask for JSON too.
	Schema json.RawMessage
	// Strict makes the server keep to Schema exactly, which OpenAI does only
	// for schemas of a narrow form.
	Strict bool
}

// settle returns the options with their defaults filled in, and the parsed
// base URL.
func settle(given *Options) (Options, *url.URL, error) {
	var o Options
	if given != nil {
		o = *given
	}
	base, err := parseBase(cmp.Or(o.BaseURL, defaultBaseURL))
	if err != nil {
		return o, nil, err
	}
	if o.APIKey == "" && isOpenAI(base) {
		o.APIKey = os.Getenv("OPENAI_API_KEY")
	}
	modern := isOpenAI(base) || isAzure(base)
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
	o.MaxRetries = max(cmp.Or(o.MaxRetries, defaultMaxRetries), 0)
	o.ResponseTimeout = cmp.Or(o.ResponseTimeout, defaultResponseTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, defaultIdleTimeout)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, defaultMaxEventBytes)
	o.MaxAnswerBytes = cmp.Or(o.MaxAnswerBytes, defaultMaxAnswerBytes)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, base, o.check()
}

// check returns what is wrong with the options, all at once.
func (o *Options) check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for name, value := range map[string]*float64{"Temperature": o.Temperature, "TopP": o.TopP} {
		if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0) {
			add("%s is %v; it must be a number from 0 up", name, *value)
		}
	}
	for name, value := range map[string]int{"MaxTokens": o.MaxTokens, "MaxEventBytes": o.MaxEventBytes, "MaxAnswerBytes": o.MaxAnswerBytes} {
		if value < 0 {
			add("%s is %d; it must not be negative", name, value)
		}
	}
	for name, value := range map[string]string{"APIKey": o.APIKey, "Organization": o.Organization, "Project": o.Project} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			add("%s holds a line end, or another character that cannot be sent", name)
		}
	}
	if f := o.ResponseFormat; f != nil && len(f.Schema) > 0 && !json.Valid(f.Schema) {
		add("ResponseFormat.Schema is not valid JSON")
	}
	for _, name := range []string{"model", "messages", "tools", "stream"} {
		if _, taken := o.ExtraBody[name]; taken {
			add("ExtraBody has %q, which is the model's own to fill", name)
		}
	}
	for name, value := range o.Headers {
		if name == "" || strings.ContainsAny(name, " :\r\n") || strings.ContainsAny(value, "\r\n") {
			add("the header %q, or its value, cannot be sent", name)
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

// parseBase checks a base URL. Its errors do not repeat it, as it can hold
// what nobody should read.
func parseBase(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("BaseURL cannot be parsed as a URL")
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("BaseURL must begin with http:// or https:// and name a host, such as http://localhost:8080/v1")
	}
	if base.User != nil || base.Fragment != "" {
		return nil, errors.New("BaseURL must not hold a user, a password or a fragment; use APIKey or Headers")
	}
	return base, nil
}

// isOpenAI reports whether a URL is of OpenAI itself, in any of its regions.
func isOpenAI(base *url.URL) bool {
	host := strings.ToLower(base.Hostname())
	return base.Scheme == "https" && (host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com"))
}

// isAzure reports whether a URL is of OpenAI's models on Azure.
func isAzure(base *url.URL) bool {
	host := strings.ToLower(base.Hostname())
	return strings.HasSuffix(host, ".openai.azure.com") || strings.HasSuffix(host, ".services.ai.azure.com")
}
