// SPDX-License-Identifier: Apache-2.0

package ensemble

import "github.com/yosida95/uritemplate/v3"

// The longest template and URI that are held against each other, in bytes: the
// work grows with their product.
const (
	maxTemplate = 1 << 10
	maxURI      = 8 << 10
)

// parseTemplate reads a URI template (RFC 6570).
func parseTemplate(template string) (*uritemplate.Template, error) {
	return uritemplate.New(template)
}

// matches reports whether a URI is one that the template stands for.
func matches(template, uri string) bool {
	_, ok := variables(template, uri)
	return ok
}

// variables returns the values that make the URI of the template; false if
// there are none, or the template cannot be read.
func variables(template, uri string) (map[string]string, bool) {
	if len(template) > maxTemplate || len(uri) > maxURI {
		return nil, false
	}
	t, err := parseTemplate(template)
	if err != nil {
		return nil, false
	}
	match := t.Match(uri)
	if match == nil {
		return nil, false
	}
	values := make(map[string]string, len(match))
	for name := range match {
		values[name] = match.Get(name).String()
	}
	return values, true
}
