// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/config/internal/provider"
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
		{"provider", choice(&m.Kind, provider.OpenAI, provider.Anthropic)},
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
func (m *Model) check(r *reader, n *document.Node) {
	if n.Member("name") == nil {
		r.missing(n, "name", `missing: expected the name of the model, such as name = "gpt-5-mini"`)
	}
	if variable := m.decisive().KeyVariable(); variable != "" && n.Member("api_key") == nil {
		if key, ok := r.Lookup(variable); ok && key != "" {
			m.APIKey = Hidden(key)
		}
	}
	if key, advice := m.decisive().Wrong(); key != "" {
		r.wrong(cmp.Or(n.Member(key), n), "%s", advice)
		return // the other keys fit the right provider
	}
	for key, advice := range m.decisive().MissingKeys() {
		set := n
		for part := range strings.SplitSeq(key, ".") {
			if set != nil {
				set = set.Member(part)
			}
		}
		if set != nil {
			r.wrong(set, "%s does not have it: remove %s%s", m.decisive().APIName(), key, advice)
		}
	}
	if elements, ok := n.Member("fallback").AsList(); ok {
		for i := range m.Fallbacks {
			m.Fallbacks[i].inherit(m, elements[i])
		}
	}
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
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		v.read(r, n)
		if u, err := url.Parse(to.Reveal()); err == nil && (u.User != nil || u.Fragment != "") {
			r.wrong(n, "expected a URL without a user, a password or a fragment; set credentials in api_key or headers")
		}
	}}
}

// extraBody is a free-form table without the members that the request sets itself.
func extraBody(to *Table) value {
	v := free(to)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		v.read(r, n)
		for _, key := range []string{"model", "messages", "input", "tools", "stream"} {
			if taken := n.Member(key); taken != nil {
				r.wrongKey(taken, "the program sets this member of the request itself")
			}
		}
	}}
}

// providers are the kinds of models. Another one needs its package, an entry here, and
// its missing keys in package provider.
var providers = map[string]func(m *Model, name string, logger *zap.Logger) (closableModel, error){
	provider.OpenAI:    openOpenAI,
	provider.Anthropic: openAnthropic,
}

// decisive returns the keys that decide whose model it is.
func (m *Model) decisive() provider.Model {
	return provider.Model{Name: m.Name.Reveal(), BaseURL: m.BaseURL.Reveal(), Provider: m.Kind, API: m.API}
}

// isContradictory reports whether a key contradicts the name or the address of the model.
func (m *Model) isContradictory() bool {
	key, _ := m.decisive().Wrong()
	return key != ""
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
	model, err := providers[m.decisive().Of()](&with, name, o.Logger)
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
	if variable := m.decisive().KeyVariable(); variable != "" && !m.hasCredentials(variable) {
		name, other := "OpenAI", ""
		if variable == provider.AnthropicKey {
			name = "Anthropic"
		}
		for of, model := range map[string]string{provider.OpenAIKey: `"gpt-…"`, provider.AnthropicKey: `"claude-…"`} {
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
