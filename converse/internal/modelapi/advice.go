// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Change is a change of an option of a model.
type Change struct {
	// Option is a field of the Options of the model's package, or Name for the name of the
	// model. ExtraBody.NAME is a member of ExtraBody.
	Option string
	// Value is the new value; nil removes the option.
	Value any
}

// Place describes for people a place, like consort.toml:7, and an option there, like
// api = "responses". A nil value stands for no certain value.
type Place func(option string, value any) (where, what string)

// place calls Place, or names the field.
func (s *Server) place(option string, value any) (where, what string) {
	if s.Place != nil {
		return s.Place(option, value)
	}
	name, member, extra := strings.Cut(option, ".")
	what = s.Package + ".Options." + name
	switch {
	case option == "Name":
		what = "the name in " + s.Package + ".New"
	case extra:
		what += fmt.Sprintf("[%q]", member)
	case value != nil:
		what += " = " + literal(value)
	}
	return "", what
}

// line returns a line of advice about an option. It returns "" if the package does not
// have the option.
func (s *Server) line(verb, option string, value any, why string) string {
	if name, _, _ := strings.Cut(option, "."); name != "Name" && !s.option(name).IsValid() {
		return ""
	}
	where, what := s.place(option, value)
	if where != "" {
		where += ": "
	}
	return where + verb + " " + what + why
}

// Change returns the advice to make a change.
func (s *Server) Change(c Change) string {
	if c.Value == nil {
		return s.line("remove", c.Option, nil, "")
	}
	return s.line("set", c.Option, c.Value, "")
}

// refused returns the advice for a member of the request that the server does not take:
// the change of the option that sets it. It returns "" if no option does.
func (s *Server) refused(member string) string {
	for name := member; name != ""; name = name[:max(0, strings.LastIndexAny(name, ".["))] {
		if _, ok := s.extra()[name]; ok {
			return s.Change(Change{Option: "ExtraBody." + name})
		}
		if change, ok := s.Members[name]; ok && (change.Value != nil || s.isSet(change.Option)) {
			return s.Change(change)
		}
	}
	return ""
}

// option returns the field of Options with that name, or an invalid value.
func (s *Server) option(name string) reflect.Value {
	options := reflect.Indirect(reflect.ValueOf(s.Options))
	if options.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return options.FieldByName(name)
}

// isSet reports whether an option is set.
func (s *Server) isSet(name string) bool {
	field := s.option(name)
	return field.IsValid() && !field.IsZero()
}

// extra returns Options.ExtraBody.
func (s *Server) extra() map[string]any {
	if !s.isSet("ExtraBody") {
		return nil
	}
	extra, _ := s.option("ExtraBody").Interface().(map[string]any)
	return extra
}

// mentioned returns the member of the request that a message mentions first, in quotes or
// before a colon.
func (s *Server) mentioned(message string) (member string) {
	first := len(message)
	for _, names := range []iter.Seq[string]{maps.Keys(s.Members), maps.Keys(s.extra())} {
		for name := range names {
			at := regexp.MustCompile("(?:^|['\"`]|supplied: |model: )" + regexp.QuoteMeta(name) + "(?:['\"`.:]|$)").FindStringIndex(message)
			if at != nil && (at[0] < first || at[0] == first && len(name) > len(member)) {
				first, member = at[0], name
			}
		}
	}
	return member
}

// literal returns a value as it is written in Go and in TOML.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	return fmt.Sprint(value)
}

var version = regexp.MustCompile(`/v\d+[a-z]*\d*(/|$)`)

// likelyBase returns the base URL that the user probably means, without its query; empty if
// the current one looks right.
func (s *Server) likelyBase() string {
	base := *s.Base
	base.RawQuery = ""
	path := strings.TrimRight(base.Path, "/")
	for _, end := range []string{"/chat/completions", "/completions", "/responses", "/messages"} {
		path = strings.TrimSuffix(path, end)
	}
	switch {
	case s.API == "messages":
		path = strings.TrimSuffix(path, "/v1")
	case !version.MatchString(path):
		path += "/v1"
	}
	if path == strings.TrimRight(s.Base.Path, "/") {
		return ""
	}
	base.Path = path
	return base.String()
}
