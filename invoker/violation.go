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

	"github.com/consort-go/consort/internal/textcut"
)

const (
	maxViolations = 10   // number of violations listed in one failure
	maxNamed      = 1000 // number of unknown members of one object that have violations of their own
	maxShown      = 80   // bytes of one value, name or pattern in a violation
	maxChoices    = 20   // number of allowed values listed in one violation
)

// violation is one violation of a schema by a JSON value.
type violation struct {
	pointer string // location in the value (RFC 6901); empty for the whole value
	text    string
	// For explainer.nearestForm: the type of the value is not allowed, or the value
	// is not one of the allowed values.
	wrongType, wrongValue bool

	unknownTo string   // the URL of the schema that does not know the property; see explainer.named
	others    int      // how many violations of the same kind follow that are not listed
	all       []string // if there are others: the names of the members that the violations of this kind are about
}

// report lists violations, one per line, and calls the root value whole.
func report(whole string, violations []violation) string {
	var b strings.Builder
	for i, v := range violations {
		if i == maxViolations {
			more := len(violations) - i
			for _, v := range violations {
				more += v.others
			}
			fmt.Fprintf(&b, "\n… and %d more", more)
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

// arrange sorts violations by location and removes duplicates: the validator
// iterates over maps, so its order is random.
func arrange(violations []violation) []violation {
	slices.SortStableFunc(violations, func(a, b violation) int {
		return cmp.Or(strings.Compare(a.pointer, b.pointer), strings.Compare(a.text, b.text), strings.Compare(a.unknownTo, b.unknownTo))
	})
	return slices.CompactFunc(violations, func(a, b violation) bool {
		return a.pointer == b.pointer && a.text == b.text && a.unknownTo == b.unknownTo
	})
}

var (
	pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
	pointerNames   = strings.NewReplacer("~1", "/", "~0", "~")
)

// pointerOf returns the JSON pointer (RFC 6901) for path.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, name)
	}
	return b.String()
}

// printable returns s with unprintable characters escaped.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.Quote(s)
		s = quoted[1 : len(quoted)-1]
	}
	return s
}

// shown formats a JSON value for a report.
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

// subject formats a value as the subject of a sentence: scalars as they are,
// objects and arrays by their type.
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

// listed joins the first maxChoices items, and adds their number if there are
// more.
func listed(items []string, separator string) string {
	if len(items) > maxChoices {
		return strings.Join(items[:maxChoices], separator) + fmt.Sprintf(" … (%d in all)", len(items))
	}
	return strings.Join(items, separator)
}
