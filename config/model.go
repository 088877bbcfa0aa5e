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
	"slices"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/provider"
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
	Name values.Value
	// BaseURL is the base URL of the API; empty means OpenAI.
	BaseURL values.Value
	// APIKey is sent as the bearer token. By default [Parse] takes it from the variable
	// OPENAI_API_KEY, but only for OpenAI's own API.
	APIKey values.Value
	// Headers are sent with each request.
	Headers map[string]values.Value
	// Organization and Project are specific to OpenAI; may be empty.
	Organization, Project values.Value
	// ResponseFormat is nil for plain text.
	ResponseFormat *ResponseFormat
	// HostedTools are tools that the server itself runs; Chat Completions has none.
	HostedTools []values.Table
	// Thinking and NoCache apply to Anthropic alone.
	Thinking string
	NoCache  bool
	// ExtraBody holds additional members of the request, for other servers.
	ExtraBody values.Table
	// Fallbacks are asked, in this order, when the models before them are unavailable;
	// see [converse.Chain]. They have no Fallbacks themselves.
	Fallbacks []Model
}

// ResponseFormat makes the model answer in JSON.
type ResponseFormat struct {
	openaimodel.ResponseFormat
	Schema values.Table // JSON Schema; empty allows any JSON object
}

func (m *Model) fields() []grammar.Field {
	return append(m.ownFields(), grammar.Key("fallback", fallbacks(&m.Fallbacks)))
}

// ownFields returns the fields of one model.
func (m *Model) ownFields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("name", grammar.Expanded(&m.Name)),
		grammar.Key("base_url", baseURL(&m.BaseURL)),
		grammar.Key("provider", grammar.Choice(&m.Kind, slices.Sorted(maps.Keys(providers))...)),
		grammar.Key("api", grammar.Choice(&m.API, "auto", "responses", "chat")),
		grammar.Key("api_key", grammar.HeaderValue(&m.APIKey)),
		grammar.Key("headers", grammar.ByName(&m.Headers, grammar.HeaderValue, plaintext.HeaderName)),
		grammar.Key("organization", grammar.HeaderValue(&m.Organization)),
		grammar.Key("project", grammar.HeaderValue(&m.Project)),
		grammar.Key("temperature", grammar.Optional(&m.Temperature, func(f *float64) grammar.Kind { return grammar.Number(f, 0, math.Inf(1)) })),
		grammar.Key("top_p", grammar.Optional(&m.TopP, func(f *float64) grammar.Kind { return grammar.Number(f, 0, 1) })),
		grammar.Key("max_tokens", grammar.Integer(&m.MaxTokens, 1)),
		grammar.Key("max_tokens_field", grammar.Text(&m.MaxTokensField)),
		grammar.Key("stop", grammar.Each(&m.Stop, grammar.Text)),
		grammar.Key("seed", grammar.Optional(&m.Seed, func(i *int64) grammar.Kind { return grammar.Integer(i, math.MinInt64) })),
		grammar.Key("tool_choice", grammar.Text(&m.ToolChoice)),
		grammar.Key("parallel_tool_calls", grammar.Optional(&m.ParallelToolCalls, grammar.Boolean)),
		grammar.Key("reasoning_effort", grammar.Text(&m.ReasoningEffort)),
		grammar.Key("reasoning_summary", grammar.Choice(&m.ReasoningSummary, "auto", "concise", "detailed")),
		grammar.Key("service_tier", grammar.Text(&m.ServiceTier)),
		grammar.Key("prompt_cache_key", grammar.Text(&m.PromptCacheKey)),
		grammar.Key("hosted_tools", grammar.Each(&m.HostedTools, grammar.Free)),
		grammar.Key("thinking", grammar.Text(&m.Thinking)),
		grammar.Key("cache", grammar.Not(&m.NoCache)),
		grammar.Key("response_format", grammar.Optional(&m.ResponseFormat, func(f *ResponseFormat) grammar.Kind { return grammar.Table(f.fields(), nil) })),
		grammar.Key("extra_body", extraBody(&m.ExtraBody)),
		grammar.Key("stream", grammar.Not(&m.NoStream)),
		grammar.Key("stream_usage", grammar.Not(&m.NoStreamUsage)),
		grammar.Key("images", grammar.Not(&m.NoImages)),
		grammar.Key("audio", grammar.Boolean(&m.Audio)),
		grammar.Key("inline_refs", grammar.Optional(&m.InlineRefs, grammar.Boolean)),
		grammar.Key("max_tools", limitOrNone(&m.MaxTools)),
		grammar.Key("max_description", limitOrNone(&m.MaxDescription)),
		grammar.Key("supervisor_role", grammar.Text(&m.SupervisorRole)),
		grammar.Key("max_retries", grammar.CountOrNone(&m.MaxRetries)),
		grammar.Key("response_timeout", grammar.Duration(&m.ResponseTimeout)),
		grammar.Key("idle_timeout", grammar.Duration(&m.IdleTimeout)),
	}
}

// check requires a name. For a provider's own API it takes a missing key from the
// environment.
func (m *Model) check(r *grammar.Reader, n *document.Node) {
	if n.Member("name") == nil {
		r.Missing(n, "name", `missing: expected the name of the model, such as name = "gpt-5-mini"`)
	}
	if variable := m.decisive().KeyVariable(); variable != "" && n.Member("api_key") == nil {
		if key, ok := r.Lookup(variable); ok && key != "" {
			m.APIKey = values.Hidden(key)
		}
	}
	if key, advice := m.decisive().Wrong(); key != "" {
		r.Wrong(cmp.Or(n.Member(key), n), "%s", advice)
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
			r.Wrong(set, "%s does not have it: remove %s%s", m.decisive().APIName(), key, advice)
		}
	}
	if elements, ok := n.Member("fallback").AsList(); ok {
		for i := range m.Fallbacks {
			m.Fallbacks[i].inherit(m, elements[i])
		}
	}
}

func (f *ResponseFormat) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("name", grammar.Text(&f.Name)),
		grammar.Key("description", grammar.Text(&f.Description)),
		grammar.Key("schema", grammar.Free(&f.Schema)),
		grammar.Key("strict", grammar.Boolean(&f.Strict)),
	}
}

// baseURL is an address without credentials, which belong in api_key.
func baseURL(to *values.Value) grammar.Kind {
	v := grammar.Address(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		v.Read(r, n)
		if u, err := url.Parse(to.Reveal()); err == nil && (u.User != nil || u.Fragment != "") {
			r.Wrong(n, "expected a URL without a user, a password or a fragment; set credentials in api_key or headers")
		}
	}}
}

// extraBody is a free-form table without the members that the request sets itself.
func extraBody(to *values.Table) grammar.Kind {
	v := grammar.Free(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		v.Read(r, n)
		for _, key := range []string{"model", "messages", "input", "tools", "stream"} {
			if taken := n.Member(key); taken != nil {
				r.WrongKey(taken, "the program sets this member of the request itself")
			}
		}
	}}
}

// providers are the kinds of models. Another one needs its package, an entry here, and one in
// internal/provider.
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
			return nil, grammar.About("response_format.schema", errors.New("missing: Anthropic's Messages API only has answers with a schema; set response_format.schema, or remove response_format"))
		}
		schema, err := json.Marshal(m.ResponseFormat.Schema.Reveal())
		if err != nil {
			return nil, grammar.About("response_format.schema", err)
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
	own := m.decisive().Own()
	if own == nil || m.hasCredentials(own.Key) {
		return nil
	}
	other := ""
	for _, p := range provider.All {
		if p != own && os.Getenv(p.Key) != "" {
			other = fmt.Sprintf(`; %s is set, which is for name = "%s"`, p.Key, p.Names)
		}
	}
	return grammar.About("api_key", fmt.Errorf(`%s requires a key; set %s, or api_key = "env:NAME" in this table, or the base_url of another server%s`, own.Name, own.Key, other))
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
				return nil, grammar.About("response_format.schema", err)
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

// limitOrNone is an integer of at least 1, or -1 for no limit.
func limitOrNone(to *int) grammar.Kind {
	v := grammar.Integer(to, -1)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		if v.Read(r, n); n.Value == int64(0) {
			r.Wrong(n, "expected an integer of at least 1, or -1 for no limit")
		}
	}}
}
