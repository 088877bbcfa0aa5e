// SPDX-License-Identifier: Apache-2.0

// Package expand replaces environment variables in the strings of a configuration.
package expand

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotSet is in the chain of an error about a variable that is not set.
var ErrNotSet = errors.New("the environment variable is not set")

// Expansion is a text with its variables replaced.
type Expansion struct {
	Text  string
	Shown string // the text as written, without defaults
	Used  bool   // the text contained a variable
	// Variables are the variables that were set. Defaults are not included, since the
	// file shows them anyway.
	Variables []Variable
}

// Variable is the name and the value of an environment variable.
type Variable struct{ Name, Text string }

// Expander replaces environment variables in texts.
type Expander struct {
	Lookup func(name string) (string, bool)
	// Foreign applies the syntax that other hosts use in their files: env:NAME and $${
	// have no special meaning, but ${env:NAME} means the same as ${NAME}.
	Foreign bool
}

// Expand replaces the variables in text. The errors name variables; they never contain
// values or text that is not a valid name.
func (x *Expander) Expand(text string) (Expansion, []error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok && !x.Foreign {
		value, err := x.variable(name)
		return Expansion{Text: value, Shown: text, Used: true, Variables: []Variable{{name, value}}}, appendError(nil, err)
	}
	var out Expansion
	var errs []error
	for {
		before, rest, found := strings.Cut(text, "${")
		if found && !x.Foreign && strings.HasSuffix(before, "$") {
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
func (x *Expander) substitute(out *Expansion, inside string) error {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if x.Foreign {
		name = strings.TrimPrefix(name, "env:")
	}
	if strings.Contains(fallback, "${") {
		return errors.New("the default of a variable cannot contain variables")
	}
	value, err := x.variable(name)
	switch {
	case err != nil && (!hasFallback || !IsName(name)):
		return err
	case value == "" && hasFallback:
		value = fallback
	default:
		out.Variables = append(out.Variables, Variable{name, value})
	}
	out.Text += value
	out.Shown += "${" + name + "}"
	out.Used = true
	return nil
}

// variable returns the value of an environment variable.
func (x *Expander) variable(name string) (string, error) {
	if !IsName(name) {
		return "", fmt.Errorf("expected the name of an environment variable: letters, digits and _%s", x.quoting())
	}
	value, ok := x.Lookup(name)
	if !ok {
		return "", fmt.Errorf("%w: %[2]s; set it, or give a default with ${%[2]s:-default}", ErrNotSet, name)
	}
	return value, nil
}

// quoting returns a hint on how to write a literal dollar sign.
func (x *Expander) quoting() string {
	if x.Foreign {
		return ""
	}
	return "; for the plain text ${ write $${"
}

func (e *Expansion) literal(s string) {
	e.Text += s
	e.Shown += s
}

// IsName reports whether s is the name of a variable, as in ${NAME}.
func IsName(s string) bool {
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
