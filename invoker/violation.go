// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/consort-go/consort/internal/near"
	"github.com/consort-go/consort/internal/textcut"
)

const (
	maxViolations = 10 // violations that one failure lists
	maxShown      = 80 // bytes of one value, name or pattern in a violation
	maxChoices    = 20 // allowed values that one violation lists
)

// violation is one way in which a JSON value breaks its schema.
type violation struct {
	pointer string // where in the value, by RFC 6901; empty for the whole
	text    string
	// For explainer.nearestForm: the value is of a type that is not allowed, or
	// is not one of the values that are.
	wrongType, wrongValue bool
}

// report lists violations, one a line, and calls the whole value by its name.
func report(whole string, violations []violation) string {
	var b strings.Builder
	for i, v := range violations {
		if i == maxViolations {
			fmt.Fprintf(&b, "\n… and %d more", len(violations)-i)
			break
		}
		place := whole
		if v.pointer != "" {
			place = printable(v.pointer)
		}
		b.WriteString("\n" + place + ": " + v.text)
	}
	return b.String()
}

// arrange sorts violations by place and removes those that say the same twice:
// the validator walks maps, so that its order is chance.
func arrange(violations []violation) []violation {
	slices.SortStableFunc(violations, func(a, b violation) int {
		return cmp.Or(strings.Compare(a.pointer, b.pointer), strings.Compare(a.text, b.text))
	})
	return slices.CompactFunc(violations, func(a, b violation) bool {
		return a.pointer == b.pointer && a.text == b.text
	})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerOf returns the JSON pointer (RFC 6901) made of path.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, name)
	}
	return b.String()
}

// printable returns s with what would break a line written as an escape.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.Quote(s)
		s = quoted[1 : len(quoted)-1]
	}
	return s
}

// shown writes a JSON value for a report.
func shown(value any) string {
	switch value := value.(type) {
	case string:
		return strconv.Quote(textcut.Bytes(value, maxShown))
	case json.Number:
		return textcut.Bytes(string(value), maxShown)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return textcut.Bytes(string(text), maxShown)
}

// subject writes a value as what a sentence is about: scalars as they are,
// the others by their type.
func subject(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return shown(value) + " (a string)"
	}
	return shown(value)
}

// listed joins the first of many, and says how many there are in all.
func listed(items []string, separator string) string {
	if len(items) > maxChoices {
		return strings.Join(items[:maxChoices], separator) + fmt.Sprintf(" … (%d in all)", len(items))
	}
	return strings.Join(items, separator)
}

// nearest returns the name that name is most likely meant to be, or "".
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", 1+len(name)/4+1
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		if d := near.Distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}
