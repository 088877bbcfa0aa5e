// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/internal/provider"
)

// placer says where an option of a model is set: where, as FILE:LINE, and what to write
// there. See openaimodel.Options.
type placer = func(option string, value any) (where, what string)

// optionKeys are the keys of options whose names differ by more than their form.
var optionKeys = map[string]string{
	"APIKey": "api_key", "Effort": "reasoning_effort", "OutputSchema": "response_format",
	"NoStream": "stream", "NoStreamUsage": "stream_usage", "NoImages": "images", "NoCache": "cache",
}

var wordStart = regexp.MustCompile(`([a-z])([A-Z])`)

// optionKey returns the key for an option of a model's package, below [model].
func optionKey(option string) string {
	name, member, extra := strings.Cut(option, ".")
	key := optionKeys[name]
	if key == "" {
		key = strings.ToLower(wordStart.ReplaceAllString(name, "${1}_$2"))
	}
	if extra {
		key += "." + member
	}
	return key
}

// placer returns a function that says where the options of a model are set: in a table, and
// its name in the key nameKey.
func (c *Config) placer(m *Model, table, nameKey string) placer {
	return func(option string, value any) (where, what string) {
		key := optionKey(option)
		path := table + "." + key
		if option == "Name" {
			path = nameKey
			key = nameKey[strings.LastIndexByte(nameKey, '.')+1:]
		}
		n := c.find(path)
		set := n != nil && n.Path() == path
		if from := c.find("model." + key); value == nil && !set && inherited[key] != nil && from != nil && from.Path() == "model."+key {
			return c.source.Where(from), key + " below [model]" // only there it can be removed
		}
		if variable := m.decisive().KeyVariable(); key == "api_key" && !set && variable != "" {
			return "", "the variable " + variable
		}
		if advice := c.unsentKey(m); key == "api_key" && !set && advice != "" {
			return "", advice
		}
		what = key
		switch value := value.(type) {
		case nil:
		case string:
			what += " = " + strconv.Quote(value)
		case bool:
			what += fmt.Sprintf(" = %v", value != strings.HasPrefix(option, "No"))
		default:
			what += fmt.Sprintf(" = %v", value)
		}
		if !set {
			what += " below " + header(table)
		}
		if n == nil {
			return "", what
		}
		return c.source.Where(n), what
	}
}

// unsentKey says that a key was not sent to the server of a model, because it belongs to
// another address, and how to send it. It returns "" if every key was sent.
func (c *Config) unsentKey(m *Model) string {
	owner := provider.Named(m.decisive().Of())
	base := c.find("model.base_url")
	switch {
	case os.Getenv(owner.Key) != "":
		return fmt.Sprintf(`api_key = "env:%s", or --set model.api_key=env:%[1]s, if this server may have the key: the key in %[1]s was not sent, because it is for %s's own address only`, owner.Key, owner.Name)
	case base != nil && c.source.Of(base).Flag:
		return `it with --set model.api_key=env:NAME: a key of the file is not sent, because it is for the address in the file only`
	}
	return ""
}

// optionErrors returns an error of a model's package as errors about the keys of [model].
func (m *Model) optionErrors(err error) error {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return err
	}
	var located []error
	for _, err := range all.Unwrap() {
		var named interface{ Option() string }
		if !errors.As(err, &named) {
			located = append(located, err)
			continue
		}
		if variable := m.decisive().KeyVariable(); named.Option() == "APIKey" && variable != "" {
			err = fmt.Errorf("%w (of api_key, or of the variable %s)", err, variable)
		}
		located = append(located, grammar.About(optionKey(named.Option()), err))
	}
	return errors.Join(located...)
}

// header returns the line that begins a table, such as [model] or [[model.fallback]].
func header(table string) string {
	if list, _, isElement := strings.Cut(table, "["); isElement {
		return "[[" + list + "]]"
	}
	return "[" + table + "]"
}
