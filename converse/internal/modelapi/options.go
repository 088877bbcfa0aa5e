// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
)

// optionError is a problem with an option.
type optionError struct {
	name string // the field
	err  error
}

func (e *optionError) Error() string { return e.err.Error() }

func (e *optionError) Unwrap() error { return e.err }

// Option returns the name of the option. The reader of a configuration finds the key by it.
func (e *optionError) Option() string { return e.name }

// Problems are the problems of the options of a model. Its methods check the options that
// the packages of models share.
type Problems []error

// Add adds a problem of an option.
func (p *Problems) Add(option, format string, args ...any) {
	*p = append(*p, &optionError{name: option, err: fmt.Errorf(format, args...)})
}

// Server adds the problems of BaseURL, APIKey and Headers.
func (p *Problems) Server(base *url.URL, key string, headers map[string]string) {
	if err := checkBase(base); err != nil {
		p.Add("BaseURL", "%w", err)
	}
	if err := checkKey(base, key); err != nil {
		p.Add("APIKey", "%w", err)
	}
	for name, value := range headers {
		if name == "" || strings.ContainsAny(name, " :\r\n") || strings.ContainsAny(value, "\r\n") {
			p.Add("Headers", "the header %q, or its value, cannot be sent", name)
		}
	}
}

// Negative adds the options that are negative.
func (p *Problems) Negative(options map[string]int) {
	for name, value := range options {
		if value < 0 {
			p.Add(name, "%s is %d; it must not be negative", name, value)
		}
	}
}

// Reserved adds the members of ExtraBody with names that the package sets itself.
func (p *Problems) Reserved(extra map[string]any, names ...string) {
	for _, name := range names {
		if _, taken := extra[name]; taken {
			p.Add("ExtraBody", "ExtraBody has %q, which the package sets itself", name)
		}
	}
}

// Limit adds the member of ExtraBody that would replace the limit of an answer, which
// requests and budgets lower.
func (p *Problems) Limit(extra map[string]any, name string) {
	if _, given := extra[name]; given {
		p.Add("ExtraBody", "ExtraBody has %q; set MaxTokens (max_tokens in a configuration) instead, which a request or a budget can lower", name)
	}
}

// Err returns the problems as one error, sorted; nil without problems.
func (p *Problems) Err() error {
	slices.SortFunc(*p, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(*p...)
}

// PlainBody returns ExtraBody as [jsontext.Plain] does.
func PlainBody(extra map[string]any) (map[string]any, error) {
	plain, err := jsontext.Plain(extra)
	if err != nil {
		return nil, &optionError{name: "ExtraBody", err: fmt.Errorf("ExtraBody: %w", err)}
	}
	return plain, nil
}

// KeyVariable returns the variable if it has the key of a model, and "" if the key was given
// as an option or is empty.
func KeyVariable(variable, given, key string) string {
	if given != "" || key == "" {
		return ""
	}
	return variable
}

// checkBase reports a base URL that ends with the path of a request.
func checkBase(base *url.URL) error {
	for _, end := range []string{"/chat/completions", "/responses", "/v1/messages"} {
		if strings.HasSuffix(strings.TrimRight(base.Path, "/"), end) {
			return fmt.Errorf("BaseURL ends with %s, which is added to it; leave it out", end)
		}
	}
	return nil
}

// keyOwners are the providers whose keys begin in a known way.
var keyOwners = []struct{ prefix, provider, name string }{
	{"sk-ant-", "anthropic", "Anthropic"},
	{"sk-or-", "openrouter", "OpenRouter"},
	{"sk-proj-", "openai", "OpenAI"},
	{"sk-svcacct-", "openai", "OpenAI"},
	{"sk-admin-", "openai", "OpenAI"},
	{"gsk_", "groq", "Groq"},
	{"xai-", "x_ai", "xAI"},
	{"AIza", "gcp.gemini", "Google"},
}

// checkKey reports a key of another provider than OpenAI or Anthropic for their hosts,
// which must not see it.
func checkKey(base *url.URL, key string) error {
	provider := ProviderOf(base)
	if provider != "openai" && provider != "anthropic" {
		return nil
	}
	for _, owner := range keyOwners {
		if strings.HasPrefix(key, owner.prefix) && owner.provider != provider {
			return fmt.Errorf("APIKey is a key of %s, and %s is another provider; use the key of that provider", owner.name, base.Hostname())
		}
	}
	return nil
}
