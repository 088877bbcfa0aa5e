// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
	"go.uber.org/zap"
)

// Model is a language model behind an API. Its own fields hide the fields of Options that
// have the same name.
type Model struct {
	openaimodel.Options
	// Kind is the kind of API: openai or anthropic. By default it follows from the base
	// URL, and without one from the name: claude… is Anthropic's.
	Kind string
	// Name is the name of the model in the API. Required.
	Name Value
	// BaseURL is the base URL of the API; empty means OpenAI.
	BaseURL Value
	// APIKey is sent as the bearer token. By default [Parse] takes it from the variable
	// OPENAI_API_KEY, but only for OpenAI's own API.
	APIKey Value
	// Headers are sent with each request.
	Headers map[string]Value
	// Organization and Project are specific to OpenAI; may be empty.
	Organization, Project Value
	// ResponseFormat is nil for plain text.
	ResponseFormat *ResponseFormat
	// HostedTools are tools that the server itself runs; Chat Completions has none.
	HostedTools []Table
	// Thinking and NoCache apply to Anthropic alone.
	Thinking string
	NoCache  bool
	// ExtraBody holds additional members of the request, for other servers.
	ExtraBody Table
	// Fallbacks are asked, in this order, when the models before them are unavailable;
	// see [converse.Chain]. They have no Fallbacks themselves.
	Fallbacks []Model
}

// ResponseFormat makes the model answer in JSON.
type ResponseFormat struct {
	openaimodel.ResponseFormat
	Schema Table // JSON Schema; empty allows any JSON object
}

func (m *Model) fields() []field {
	return append(m.ownFields(), field{"fallback", fallbacks(&m.Fallbacks)})
}

// ownFields returns the fields of one model.
func (m *Model) ownFields() []field {
	return []field{
		{"name", expanded(&m.Name)},
		{"base_url", baseURL(&m.BaseURL)},
		{"provider", choice(&m.Kind, providerOpenAI, providerAnthropic)},
		{"api", choice(&m.API, "auto", "responses", "chat")},
		{"api_key", headerValue(&m.APIKey)},
		{"headers", byName(&m.Headers, headerValue, plaintext.HeaderName)},
		{"organization", headerValue(&m.Organization)},
		{"project", headerValue(&m.Project)},
		{"temperature", optional(&m.Temperature, func(f *float64) value { return number(f, 0, math.Inf(1)) })},
		{"top_p", optional(&m.TopP, func(f *float64) value { return number(f, 0, 1) })},
		{"max_tokens", integer(&m.MaxTokens, 1)},
		{"max_tokens_field", text(&m.MaxTokensField)},
		{"stop", each(&m.Stop, text)},
		{"seed", optional(&m.Seed, func(i *int64) value { return integer(i, math.MinInt64) })},
		{"tool_choice", text(&m.ToolChoice)},
		{"parallel_tool_calls", optional(&m.ParallelToolCalls, boolean)},
		{"reasoning_effort", text(&m.ReasoningEffort)},
		{"reasoning_summary", choice(&m.ReasoningSummary, "auto", "concise", "detailed")},
		{"service_tier", text(&m.ServiceTier)},
		{"prompt_cache_key", text(&m.PromptCacheKey)},
		{"hosted_tools", each(&m.HostedTools, free)},
		{"thinking", text(&m.Thinking)},
		{"cache", not(&m.NoCache)},
		{"response_format", optional(&m.ResponseFormat, func(f *ResponseFormat) value { return tableOf(f.fields(), nil) })},
		{"extra_body", extraBody(&m.ExtraBody)},
		{"stream", not(&m.NoStream)},
		{"stream_usage", not(&m.NoStreamUsage)},
		{"images", not(&m.NoImages)},
		{"audio", boolean(&m.Audio)},
		{"inline_refs", optional(&m.InlineRefs, boolean)},
		{"max_tools", integer(&m.MaxTools, -1)},
		{"max_description", integer(&m.MaxDescription, -1)},
		{"supervisor_role", text(&m.SupervisorRole)},
		{"max_retries", countOrNone(&m.MaxRetries)},
		{"response_timeout", duration(&m.ResponseTimeout)},
		{"idle_timeout", duration(&m.IdleTimeout)},
	}
}

// check requires a name. For a provider's own API it takes a missing key from the
// environment.
func (m *Model) check(r *reader, n *node) {
	if n.member("name") == nil {
		r.missing(n, "name", `missing: expected the name of the model, such as name = "gpt-5-mini"`)
	}
	if variable := m.keyVariable(); variable != "" && n.member("api_key") == nil {
		if key, ok := r.Lookup(variable); ok && key != "" {
			m.APIKey = Hidden(key)
		}
	}
	if wrong := m.wrongProvider(); wrong.key != "" {
		r.wrong(cmp.Or(n.member(wrong.key), n), "%s", wrong.advice)
		return // the other keys fit the right provider
	}
	for key, advice := range m.missingKeys() {
		set := n
		for part := range strings.SplitSeq(key, ".") {
			if set != nil {
				set = set.member(part)
			}
		}
		if set != nil {
			r.wrong(set, "%s does not have it: remove %s%s", m.apiName(), key, advice)
		}
	}
	if elements, ok := n.member("fallback").asList(); ok {
		for i := range m.Fallbacks {
			m.Fallbacks[i].inherit(m, elements[i])
		}
	}
}

// wrongProvider returns the key that contradicts the name or the address of the model, and
// what to do about it. Servers other than OpenAI's and Anthropic's can have any model.
func (m *Model) wrongProvider() (wrong struct{ key, advice string }) {
	name, address := m.Name.Reveal(), m.BaseURL.Reveal()
	claude, gpt := providerOf(name) == providerAnthropic, providerOf(name) == providerOpenAI
	base, _ := url.Parse(address)
	atAnthropic := base != nil && strings.EqualFold(base.Hostname(), "api.anthropic.com")
	set := func(key, advice string) { wrong.key, wrong.advice = key, advice }
	switch {
	case m.Kind == providerAnthropic && address != "" && m.isOpenAI():
		set("provider", `the base_url is OpenAI's: set provider = "openai", or remove base_url`)
	case claude && m.Kind == providerOpenAI && address == "":
		set("provider", `the model is one of Anthropic: set provider = "anthropic", or remove provider`)
	case gpt && m.Kind == providerAnthropic && address == "":
		set("provider", `the model is one of OpenAI: set provider = "openai", or remove provider`)
	case claude && address != "" && m.isOpenAI():
		set("base_url", `the address is OpenAI's, and the model is one of Anthropic: remove base_url`)
	case gpt && atAnthropic:
		set("base_url", `the address is Anthropic's, and the model is one of OpenAI: remove base_url`)
	}
	return wrong
}

// apiName names the API of the model.
func (m *Model) apiName() string {
	switch {
	case m.provider() == providerAnthropic:
		return "Anthropic's Messages API"
	case m.usesResponses():
		return "OpenAI's Responses API"
	}
	return "the Chat Completions API"
}

// usesResponses reports whether a model of the provider OpenAI is asked in Responses.
func (m *Model) usesResponses() bool {
	base, err := url.Parse(cmp.Or(m.BaseURL.Reveal(), "https://api.openai.com/v1"))
	if err != nil || m.API == "responses" || m.API == "chat" {
		return m.API == "responses"
	}
	return openaimodel.DefaultAPI(base) == "responses"
}

// missingKeys returns the keys that the API of the model does not have, with what to do
// instead of leaving them out. Nothing is left out silently.
func (m *Model) missingKeys() map[string]string {
	all := func(advice string, keys ...string) map[string]string {
		missing := map[string]string{}
		for _, key := range keys {
			missing[key] = advice
		}
		return missing
	}
	if m.provider() == providerAnthropic {
		missing := all("", "organization", "project", "max_tokens_field", "seed", "reasoning_summary", "prompt_cache_key",
			"stream_usage", "audio", "inline_refs", "supervisor_role", "response_format.name", "response_format.description")
		missing["api"] = `, or set provider = "openai" for a server that speaks OpenAI's APIs`
		return missing
	}
	missing := all(`, or set api = "responses"`, "hosted_tools", "reasoning_summary")
	if m.usesResponses() {
		missing = all(`, or set api = "chat"`, "stop", "seed", "audio", "max_tokens_field", "stream_usage")
	}
	maps.Copy(missing, all(`, or set provider = "anthropic"`, "thinking", "cache"))
	return missing
}

func (f *ResponseFormat) fields() []field {
	return []field{
		{"name", text(&f.Name)},
		{"description", text(&f.Description)},
		{"schema", free(&f.Schema)},
		{"strict", boolean(&f.Strict)},
	}
}

// baseURL is an address without credentials, which belong in api_key.
func baseURL(to *Value) value {
	v := address(to)
	return value{kind: v.kind, read: func(r *reader, n *node) {
		v.read(r, n)
		if u, err := url.Parse(to.Reveal()); err == nil && (u.User != nil || u.Fragment != "") {
			r.wrong(n, "expected a URL without a user, a password or a fragment; set credentials in api_key or headers")
		}
	}}
}

// extraBody is a free-form table without the members that the request sets itself.
func extraBody(to *Table) value {
	v := free(to)
	return value{kind: v.kind, read: func(r *reader, n *node) {
		v.read(r, n)
		for _, key := range []string{"model", "messages", "input", "tools", "stream"} {
			if taken := n.member(key); taken != nil {
				r.wrongKey(taken, "the program sets this member of the request itself")
			}
		}
	}}
}

// The variables with the keys of providers.
const (
	openAIKey    = "OPENAI_API_KEY"
	anthropicKey = "ANTHROPIC_API_KEY"
)

// The providers of models.
const (
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
)

// providers are the kinds of models. Another one needs its package, an entry here, and
// its missing keys in missingKeys.
var providers = map[string]func(m *Model, name string, logger *zap.Logger) (closableModel, error){
	providerOpenAI:    openOpenAI,
	providerAnthropic: openAnthropic,
}

// provider returns the provider that the file names, or that follows from the base URL or
// the name.
func (m *Model) provider() string {
	base, err := url.Parse(m.BaseURL.Reveal())
	switch {
	case m.Kind != "":
		return m.Kind
	case m.BaseURL.Reveal() == "" && strings.HasPrefix(m.Name.Reveal(), "claude"),
		err == nil && strings.EqualFold(base.Hostname(), "api.anthropic.com"):
		return providerAnthropic
	}
	return providerOpenAI
}

// keyVariable returns the variable with the key of the model's API; empty if it is not the
// provider's own, over HTTPS.
func (m *Model) keyVariable() string {
	base, err := url.Parse(m.BaseURL.Reveal())
	own := m.BaseURL.Reveal() == "" || err == nil && base.Scheme == "https" && strings.EqualFold(base.Hostname(), "api.anthropic.com")
	switch {
	case m.provider() == providerAnthropic && own:
		return anthropicKey
	case m.provider() == providerOpenAI && m.isOpenAI():
		return openAIKey
	}
	return ""
}

// closableModel is a model with resources.
type closableModel interface {
	converse.Model
	Close() error
}

// openModel opens a model of the API that m has. place says where its options are set.
func (a *Assembly) openModel(m *Model, name string, place placer, o *AssembleOptions) (converse.Model, error) {
	with := *m
	with.Place = place
	model, err := providers[m.provider()](&with, name, o.Logger)
	if err != nil {
		return nil, m.optionErrors(err)
	}
	a.closers = append(a.closers, model.Close)
	return model, nil
}

func openAnthropic(m *Model, name string, logger *zap.Logger) (closableModel, error) {
	if err := m.checkKey(); err != nil {
		return nil, err
	}
	o := m.Options
	options := &anthropicmodel.Options{
		BaseURL: strings.TrimSuffix(strings.TrimSuffix(m.BaseURL.Reveal(), "/"), "/v1"), // as OpenAI's SDK would take it
		APIKey:  m.APIKey.Reveal(), Headers: reveal(m.Headers), NoStream: o.NoStream,
		MaxTokens: o.MaxTokens, Temperature: o.Temperature, TopP: o.TopP, Stop: o.Stop, ToolChoice: o.ToolChoice, ParallelToolCalls: o.ParallelToolCalls,
		Thinking: m.Thinking, Effort: o.ReasoningEffort, ServiceTier: o.ServiceTier, NoCache: m.NoCache, ExtraBody: m.ExtraBody.Reveal(),
		NoImages: o.NoImages, MaxTools: o.MaxTools, MaxDescription: o.MaxDescription, MaxRetries: o.MaxRetries,
		ResponseTimeout: o.ResponseTimeout, IdleTimeout: o.IdleTimeout, Logger: logger,
		Place: o.Place,
	}
	if options.ToolChoice == "required" {
		options.ToolChoice = "any"
	}
	for _, tool := range m.HostedTools {
		options.HostedTools = append(options.HostedTools, tool.Reveal())
	}
	if m.ResponseFormat != nil {
		if m.ResponseFormat.Schema.Reveal() == nil {
			return nil, about("response_format.schema", errors.New("missing: Anthropic's Messages API only has answers with a schema; set response_format.schema, or remove response_format"))
		}
		schema, err := json.Marshal(m.ResponseFormat.Schema.Reveal())
		if err != nil {
			return nil, about("response_format.schema", err)
		}
		options.OutputSchema = schema
	}
	model, err := anthropicmodel.New(name, options)
	if err != nil {
		return nil, err
	}
	return model, nil
}

// checkKey reports that the API of a provider has no key.
func (m *Model) checkKey() error {
	if variable := m.keyVariable(); variable != "" && !m.hasCredentials(variable) {
		name, other := "OpenAI", ""
		if variable == anthropicKey {
			name = "Anthropic"
		}
		for of, model := range map[string]string{openAIKey: `"gpt-…"`, anthropicKey: `"claude-…"`} {
			if of != variable && os.Getenv(of) != "" {
				other = fmt.Sprintf("; %s is set, which is for name = %s", of, model)
			}
		}
		return about("api_key", fmt.Errorf(`%s requires a key; set %s, or api_key = "env:NAME" in this table, or the base_url of another server%s`, name, variable, other))
	}
	return nil
}

func openOpenAI(m *Model, name string, logger *zap.Logger) (closableModel, error) {
	options, err := m.options()
	if err != nil {
		return nil, err
	}
	options.Logger = logger
	model, err := openaimodel.New(name, options)
	if err != nil {
		return nil, err
	}
	return model, nil
}

// options returns m.Options with the values of m.
func (m *Model) options() (*openaimodel.Options, error) {
	if err := m.checkKey(); err != nil {
		return nil, err
	}
	options := m.Options
	options.BaseURL, options.APIKey = m.BaseURL.Reveal(), m.APIKey.Reveal()
	options.Organization, options.Project = m.Organization.Reveal(), m.Project.Reveal()
	options.Headers, options.ExtraBody = reveal(m.Headers), m.ExtraBody.Reveal()
	for _, tool := range m.HostedTools {
		options.HostedTools = append(options.HostedTools, tool.Reveal())
	}
	if f := m.ResponseFormat; f != nil {
		format := f.ResponseFormat
		if schema := f.Schema.Reveal(); schema != nil {
			text, err := json.Marshal(schema)
			if err != nil {
				return nil, about("response_format.schema", err)
			}
			format.Schema = text
		}
		options.ResponseFormat = &format
	}
	return &options, nil
}

// hasCredentials reports whether there is a key or an Authorization header. A Config that
// was not read from a file may take the key from the environment.
func (m *Model) hasCredentials(variable string) bool {
	for name := range m.Headers {
		if key := http.CanonicalHeaderKey(name); key == "Authorization" || key == "X-Api-Key" {
			return true
		}
	}
	return m.APIKey.Reveal() != "" || os.Getenv(variable) != ""
}

// isOpenAI reports whether the model's API is OpenAI's own, over HTTPS.
func (m *Model) isOpenAI() bool {
	if m.BaseURL.Reveal() == "" {
		return true
	}
	u, err := url.Parse(m.BaseURL.Reveal())
	if err != nil || u.Scheme != "https" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com")
}
