// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Forged is the cause of an [InvalidArguments] failure: the arguments name trusted
// values. It is for logs and audits: the caller tried to set a value that only the
// program may set.
type Forged struct {
	// Names are the names of these trusted values, sorted and without duplicates.
	Names []string
}

// Error returns a message with the names.
func (f *Forged) Error() string {
	return "the arguments contain names that only the program may set: " + strings.Join(f.Names, ", ")
}

// named is a need for a value of any type.
type named string

func (n named) Name() string { return string(n) }

func (n named) isIn(ctx context.Context) bool {
	_, ok := TrustedValue(ctx, string(n))
	return ok
}

// needsOf returns the needs of a definition and of options together, sorted by
// name.
func needsOf(names []string, needs []Need) ([]Need, error) {
	all := slices.Clone(needs)
	for _, name := range names {
		all = append(all, named(name))
	}
	for _, need := range all {
		if need == nil || need.Name() == "" {
			return nil, errors.New("a need has no name; make it with NewTrusted")
		}
	}
	slices.SortStableFunc(all, func(a, b Need) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// namesOf returns the names of sorted needs without duplicates.
func namesOf(needs []Need) []string {
	var names []string
	for _, need := range needs {
		names = append(names, need.Name())
	}
	return slices.Compact(names)
}

// lacking returns the failure for a call whose context does not carry all needs,
// or nil.
func lacking(ctx context.Context, needs []Need) *Failure {
	var missing []Need
	for _, need := range needs {
		if !need.isIn(ctx) {
			missing = append(missing, need)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := namesOf(missing)
	causes := make([]error, len(names))
	for i, name := range names {
		causes[i] = fmt.Errorf("the trusted value %q is missing", name)
		if _, ok := TrustedValue(ctx, name); ok {
			causes[i] = fmt.Errorf("the trusted value %q is not of the type that the tool needs", name)
		}
	}
	return &Failure{
		Code: Unauthorized,
		Message: "The tool was not run: it needs " + strings.Join(names, ", ") +
			", which only the program that runs it can provide. No argument can replace that.",
		Cause: errors.Join(causes...),
	}
}

// reserved maps the names of arguments that callers may not send to the names of
// their trusted values.
type reserved map[string]string

func (r reserved) has(name string) bool {
	for argument := range r {
		if strings.EqualFold(name, argument) {
			return true
		}
	}
	return false
}

// forged searches the arguments for reserved names, even if other parts of the
// text are invalid. It ignores case: package json, and servers that use it,
// accept USER_ID for user_id.
func (r reserved) forged(text json.RawMessage) (*Forged, []violation) {
	if len(r) == 0 {
		return nil, nil
	}
	var values []string
	var violations []violation
	eachName(text, func(name string) {
		for argument, value := range r {
			if strings.EqualFold(asRead(name), argument) {
				values = append(values, value)
				violations = append(violations, violation{
					pointer: pointerOf([]string{name}),
					text:    "is set by the program that runs the tool; leave it out",
				})
			}
		}
	})
	if len(values) == 0 {
		return nil, nil
	}
	slices.Sort(values)
	return &Forged{Names: slices.Compact(values)}, arrange(violations)
}

// asRead returns a name as lenient readers may interpret it: some end strings at
// the first NUL, as C does, and some skip invalid UTF-8, which package json
// decodes as U+FFFD.
func asRead(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.ReplaceAll(name, "\ufffd", "")
}

// eachName calls visit for the names of the members of an object, including
// duplicates, until the end of the valid part of the text.
func eachName(text json.RawMessage, visit func(string)) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for depth, isName := 0, false; ; {
		token, err := decoder.Token()
		if err != nil || depth == 0 && token != json.Delim('{') {
			return
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
			if name, ok := token.(string); ok && isName {
				visit(name)
				isName = false
				continue
			}
		}
		isName = depth == 1 // after a value, or at the start of the object
	}
}
