// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/consort-go/consort/invoker"
)

// Trusted returns a function that applies clean after removing the secret trusted
// values that ctx carries. For a value that is not a string, it removes its JSON
// text and every string and number in it. If there are no such values, Trusted
// returns clean itself.
func Trusted(ctx context.Context, clean func(text string) string) func(text string) string {
	var secrets []string
	for _, value := range invoker.TrustedFrom(ctx) {
		if text, err := value.Reveal(); err == nil && value.IsSecret() {
			secrets = append(appendLeaves(secrets, text), string(text))
		}
	}
	trusted := New(secrets...)
	switch {
	case trusted == nil:
		return clean
	case clean == nil:
		return trusted
	}
	return func(text string) string { return clean(trusted(text)) }
}

// appendLeaves appends the strings and the numbers of a JSON value, but not the
// names of members.
func appendLeaves(leaves []string, text json.RawMessage) []string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return leaves
	}
	open := []any{value}
	for len(open) > 0 {
		value, open = open[len(open)-1], open[:len(open)-1]
		switch value := value.(type) {
		case string:
			leaves = append(leaves, value)
		case json.Number:
			leaves = append(leaves, value.String())
		case []any:
			open = append(open, value...)
		case map[string]any:
			for _, member := range value {
				open = append(open, member)
			}
		}
	}
	return leaves
}
