// SPDX-License-Identifier: Apache-2.0

// Package provider has the providers of models. It tells, by the keys of a model, whose model
// it is, which API it is asked in, and which keys this API does not have.
package provider

import (
	"cmp"
	"maps"
	"net/url"
	"strings"

	"github.com/consort-go/consort/converse/openaimodel"
)

// The IDs of the providers, as in the key provider.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// Provider is a company that has models and an API of its own.
type Provider struct {
	ID       string
	Name     string // for people
	Key      string // the variable with its key
	Names    string // how the names of its models begin, for people
	Proposed string // the model that is proposed
}

// All are the providers. The first one is the usual one.
var All = []*Provider{
	{ID: OpenAI, Name: "OpenAI", Key: "OPENAI_API_KEY", Names: "gpt-…", Proposed: "gpt-5-mini"},
	{ID: Anthropic, Name: "Anthropic", Key: "ANTHROPIC_API_KEY", Names: "claude-…", Proposed: "claude-sonnet-5"},
}

// Named returns the provider with an ID; nil if no provider has it.
func Named(id string) *Provider {
	for _, p := range All {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Model has the keys of a model that decide; all may be empty.
type Model struct {
	Name     string
	BaseURL  string
	Provider string // one of the providers; by default it follows from the other keys
	API      string // of OpenAI: responses, chat, or auto
}

// Of returns the provider that the keys name, or that follows from the base URL or the
// name.
func (m Model) Of() string {
	switch {
	case m.Provider != "":
		return m.Provider
	case m.BaseURL == "" && strings.HasPrefix(m.Name, "claude"), m.atAnthropic():
		return Anthropic
	}
	return OpenAI
}

// OfName returns the provider whose models have such names, or "".
func OfName(name string) string {
	if strings.HasPrefix(name, "claude") {
		return Anthropic
	}
	for _, prefix := range []string{"gpt-", "o1", "o3", "o4"} {
		if strings.HasPrefix(name, prefix) {
			return OpenAI
		}
	}
	return ""
}

// Own returns the provider whose own API the model is asked in, over HTTPS; nil if another
// server is asked.
func (m Model) Own() *Provider {
	switch of := m.Of(); {
	case of == Anthropic && (m.BaseURL == "" || m.atAnthropic() && strings.HasPrefix(strings.ToLower(m.BaseURL), "https:")),
		of == OpenAI && m.atOpenAI():
		return Named(of)
	}
	return nil
}

// KeyVariable returns the variable with the key of the model's API; empty if it is not the
// provider's own, over HTTPS.
func (m Model) KeyVariable() string {
	if own := m.Own(); own != nil {
		return own.Key
	}
	return ""
}

// atAnthropic reports whether the base URL is Anthropic's own.
func (m Model) atAnthropic() bool {
	base, err := url.Parse(m.BaseURL)
	return err == nil && strings.EqualFold(base.Hostname(), "api.anthropic.com")
}

// atOpenAI reports whether the API is OpenAI's own, over HTTPS.
func (m Model) atOpenAI() bool {
	if m.BaseURL == "" {
		return true
	}
	base, err := url.Parse(m.BaseURL)
	if err != nil || base.Scheme != "https" {
		return false
	}
	host := strings.ToLower(base.Hostname())
	return host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com")
}

// Wrong returns the key that contradicts the name or the address of the model, and what to
// do about it; empty if none does. Servers other than OpenAI's and Anthropic's can have any
// model.
func (m Model) Wrong() (key, advice string) {
	claude, gpt := OfName(m.Name) == Anthropic, OfName(m.Name) == OpenAI
	switch {
	case m.Provider == Anthropic && m.BaseURL != "" && m.atOpenAI():
		return "provider", `the base_url is OpenAI's: set provider = "openai", or remove base_url`
	case claude && m.Provider == OpenAI && m.BaseURL == "":
		return "provider", `the model is one of Anthropic: set provider = "anthropic", or remove provider`
	case gpt && m.Provider == Anthropic && m.BaseURL == "":
		return "provider", `the model is one of OpenAI: set provider = "openai", or remove provider`
	case claude && m.BaseURL != "" && m.atOpenAI():
		return "base_url", `the address is OpenAI's, and the model is one of Anthropic: remove base_url`
	case gpt && m.atAnthropic():
		return "base_url", `the address is Anthropic's, and the model is one of OpenAI: remove base_url`
	}
	return "", ""
}

// APIName names the API of the model for people.
func (m Model) APIName() string {
	switch {
	case m.Of() == Anthropic:
		return "Anthropic's Messages API"
	case m.usesResponses():
		return "OpenAI's Responses API"
	}
	return "the Chat Completions API"
}

// usesResponses reports whether a model of the provider OpenAI is asked in Responses.
func (m Model) usesResponses() bool {
	base, err := url.Parse(cmp.Or(m.BaseURL, "https://api.openai.com/v1"))
	if err != nil || m.API == "responses" || m.API == "chat" {
		return m.API == "responses"
	}
	return openaimodel.DefaultAPI(base) == "responses"
}

// MissingKeys returns the keys that the API of the model does not have, with what to do
// instead of leaving them out. Nothing is left out silently.
func (m Model) MissingKeys() map[string]string {
	if m.Of() == Anthropic {
		missing := advise("", "organization", "project", "max_tokens_field", "seed", "reasoning_summary", "prompt_cache_key",
			"stream_usage", "audio", "inline_refs", "supervisor_role", "response_format.name", "response_format.description")
		missing["api"] = `, or set provider = "openai" for a server that speaks OpenAI's APIs`
		return missing
	}
	missing := advise(`, or set api = "responses"`, "hosted_tools", "reasoning_summary")
	if m.usesResponses() {
		missing = advise(`, or set api = "chat"`, "stop", "seed", "audio", "max_tokens_field", "stream_usage")
	}
	maps.Copy(missing, advise(`, or set provider = "anthropic"`, "thinking", "cache"))
	return missing
}

func advise(advice string, keys ...string) map[string]string {
	missing := map[string]string{}
	for _, key := range keys {
		missing[key] = advice
	}
	return missing
}
