// SPDX-License-Identifier: Apache-2.0

// Package uritemplate matches URIs against URI templates (RFC 6570), and expands
// these. All may come from a server or a client that is not trusted.
package uritemplate

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// MaxURI is the largest URI that is matched, in bytes. The limits exist because the work
// grows with the product of template and URI.
const MaxURI = 2 << 10

// The largest template that is matched, in bytes and expressions.
const (
	maxTemplate    = 512
	maxExpressions = 16
)

// Check returns an error if a template is invalid or too large to be matched.
func Check(template string) error {
	if len(template) > maxTemplate {
		return fmt.Errorf("it has more than %d bytes", maxTemplate)
	}
	if strings.Count(template, "{") > maxExpressions || strings.Count(template, ",") > maxExpressions {
		return fmt.Errorf("it has more than %d expressions or variables", maxExpressions)
	}
	_, err := uritemplate.New(template)
	return err
}

// literal returns the prefix that all URIs of the template have.
func literal(template string) string {
	prefix, _, _ := strings.Cut(template, "{")
	return prefix
}

// HasScheme reports whether the template fixes the scheme of its URIs (RFC 3986, § 3.1).
// One that does not could match the URIs of all other servers.
func HasScheme(template string) bool { return strings.Contains(literal(template), ":") }

// Match returns the values of the template's variables in the URI; false if the URI
// does not match, or the template is invalid. It uses a Go regular expression, because
// the time that the library's own Match takes for a malicious template is unbounded.
func Match(template, uri string) (values map[string]string, ok bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, literal(template)) || Check(template) != nil {
		return nil, false
	}
	pattern, names := patternOf(template)
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, false
	}
	match := expression.FindStringSubmatch(uri)
	if match == nil {
		return nil, false
	}
	values = make(map[string]string, len(names))
	for i, name := range names {
		value, err := url.PathUnescape(match[i+1])
		if err != nil {
			return nil, false
		}
		values[name] = value
	}
	return values, true
}

// Expand expands the expressions of a template that have at least one known variable (RFC
// 6570, § 3.2). The others stay as they are. A template that is not valid is
// returned unchanged.
func Expand(template string, values map[string]string) string {
	if Check(template) != nil {
		return template
	}
	known := make(uritemplate.Values, len(values))
	for name, value := range values {
		known.Set(name, uritemplate.String(value))
	}
	var b strings.Builder
	for rest := template; ; {
		literal, after, found := strings.Cut(rest, "{")
		b.WriteString(literal)
		if !found {
			return b.String()
		}
		var expression string
		expression, rest, _ = strings.Cut(after, "}")
		expression = "{" + expression + "}"
		one, err := uritemplate.New(expression)
		if err == nil && slices.ContainsFunc(one.Varnames(), func(name string) bool { _, ok := values[name]; return ok }) {
			if expanded, err := one.Expand(known); err == nil {
				expression = expanded
			}
		}
		b.WriteString(expression)
	}
}

// patternOf returns the template as a regular expression, and the names of the
// variables in the order of its groups.
func patternOf(template string) (pattern string, names []string) {
	var b strings.Builder
	b.WriteString(`\A`)
	for {
		literal, rest, found := strings.Cut(template, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			b.WriteString(`\z`)
			return b.String(), names
		}
		var expression string
		expression, template, _ = strings.Cut(rest, "}")
		names = append(names, writeExpression(&b, expression)...)
	}
}

// operator determines the form of an expression's variables in a URI (RFC 6570,
// appendix A).
type operator struct {
	first, separator string
	named            bool
	value            string // a regular expression
}

// plain matches a value without reserved characters, and whole one that may have them.
// URIs have no control characters (RFC 3986, § 2).
const (
	plain = `[^\x00-\x1f\x7f:/?#\[\]@!$&'()*+,;=]*`
	whole = `[^\x00-\x1f\x7f]*`
)

var operators = map[byte]operator{
	'+': {"", ",", false, whole},
	'#': {"#", ",", false, whole},
	'.': {".", ".", false, plain},
	'/': {"/", "/", false, plain},
	';': {";", ";", true, plain},
	'?': {"?", "&", true, plain},
	'&': {"&", "&", true, plain},
}

// writeExpression writes one expression of a template and returns the names of its
// variables. Each variable is optional, except for the first one of an expression
// without names.
func writeExpression(b *strings.Builder, expression string) (names []string) {
	o, known := operators[expression[0]]
	if known {
		expression = expression[1:]
	} else {
		o = operator{"", ",", false, plain}
	}
	for i, variable := range strings.Split(expression, ",") {
		name, _, _ := strings.Cut(strings.TrimSuffix(variable, "*"), ":")
		value := o.value
		if strings.HasSuffix(variable, "*") && o.value == plain {
			value = `(?:` + plain + regexp.QuoteMeta(o.separator) + `)*` + plain
		}
		before := o.separator
		if i == 0 {
			before = o.first
		}
		before = regexp.QuoteMeta(before)
		if o.named {
			fmt.Fprintf(b, `(?:[%s%s]%s=?(%s))?`, o.first, o.separator, regexp.QuoteMeta(name), value)
		} else if i == 0 {
			fmt.Fprintf(b, `%s(%s)`, before, value)
		} else {
			fmt.Fprintf(b, `(?:%s(%s))?`, before, value)
		}
		names = append(names, name)
	}
	return names
}
