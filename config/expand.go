// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
)

// expansion is a text with its variables replaced.
type expansion struct {
	text  string
	shown string // the text as written, without defaults
	used  bool   // the text contained a variable
	// variables are the variables that were set. Defaults are not included, since the
	// file shows them anyway.
	variables []variable
}

// value returns the text as a Value that is printed as shown.
func (e *expansion) value(shown string) Value {
	return Value{shown: shown, held: keep(held{text: e.text, variables: e.variables})}
}

// expander replaces environment variables in texts.
type expander struct {
	lookup func(name string) (string, bool)
	// foreign applies the syntax that other hosts use in their files: env:NAME and $${
	// have no special meaning, but ${env:NAME} means the same as ${NAME}.
	foreign bool
}

// expand replaces the variables in text. The errors name variables; they never contain
// values or text that is not a valid name.
func (x *expander) expand(text string) (expansion, []error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok && !x.foreign {
		value, err := x.variable(name)
		return expansion{text: value, shown: text, used: true, variables: []variable{{name, value}}}, appendError(nil, err)
	}
	var out expansion
	var errs []error
	for {
		before, rest, found := strings.Cut(text, "${")
		if found && !x.foreign && strings.HasSuffix(before, "$") {
			out.literal(before + "{") // the first dollar sign quotes the second
			text = rest
			continue
		}
		out.literal(before)
		if !found {
			return out, errs
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return out, append(errs, fmt.Errorf("%q is not closed by %q%s", "${", "}", x.quoting()))
		}
		err := x.substitute(&out, inside)
		errs = appendError(errs, err)
		text = after
	}
}

// substitute adds the replacement for the text between ${ and }.
func (x *expander) substitute(out *expansion, inside string) error {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if x.foreign {
		name = strings.TrimPrefix(name, "env:")
	}
	if strings.Contains(fallback, "${") {
		return errors.New("the default of a variable cannot contain variables")
	}
	value, err := x.variable(name)
	switch {
	case err != nil && (!hasFallback || !isName(name)):
		return err
	case value == "" && hasFallback:
		value = fallback
	default:
		out.variables = append(out.variables, variable{name, value})
	}
	out.text += value
	out.shown += "${" + name + "}"
	out.used = true
	return nil
}

// variable returns the value of an environment variable.
func (x *expander) variable(name string) (string, error) {
	if !isName(name) {
		return "", fmt.Errorf("expected the name of an environment variable: letters, digits and _%s", x.quoting())
	}
	value, ok := x.lookup(name)
	if !ok {
		return "", fmt.Errorf("%w: %[2]s; set it, or give a default with ${%[2]s:-default}", ErrVariable, name)
	}
	return value, nil
}

// quoting returns a hint on how to write a literal dollar sign.
func (x *expander) quoting() string {
	if x.foreign {
		return ""
	}
	return "; for the plain text ${ write $${"
}

func (e *expansion) literal(s string) {
	e.text += s
	e.shown += s
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func appendError(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}
