// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// The largest template and URI that are matched, in bytes and expressions: the work
// grows with their product.
const (
	maxTemplate    = 512
	maxExpressions = 16
	maxURI         = 2 << 10
)

// checkTemplate returns an error if a URI template (RFC 6570) is invalid or too large.
func checkTemplate(template string) error {
	if len(template) > maxTemplate {
		return fmt.Errorf("it has more than %d bytes", maxTemplate)
	}
	if strings.Count(template, "{") > maxExpressions || strings.Count(template, ",") > maxExpressions {
		return fmt.Errorf("it has more than %d expressions or variables", maxExpressions)
	}
	_, err := uritemplate.New(template)
	return err
}

// beginning returns the literal prefix of all URIs of the template.
func beginning(template string) string {
	literal, _, _ := strings.Cut(template, "{")
	return literal
}

// anchored reports whether the template fixes the scheme of its URIs (RFC 3986, § 3.1).
// One that does not could match the URIs of all other ensembles.
func anchored(template string) bool { return strings.Contains(beginning(template), ":") }

// matches reports whether a URI matches the template.
func matches(template, uri string) bool {
	_, ok := variables(template, uri)
	return ok
}

// variables returns the values of the template's variables in the URI; false if the URI
// does not match, or the template is invalid. It uses a Go regular expression, because
// the time that the library's own Match takes for a malicious template is unbounded.
func variables(template, uri string) (map[string]string, bool) {
	if len(uri) > maxURI || !strings.HasPrefix(uri, beginning(template)) || checkTemplate(template) != nil {
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
	values := make(map[string]string, len(names))
	for i, name := range names {
		value, err := url.PathUnescape(match[i+1])
		if err != nil {
			return nil, false
		}
		values[name] = value
	}
	return values, true
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
