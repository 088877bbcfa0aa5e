// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
)

// Allows reports whether a conversation passes everything of the filter but
// Text and Limit, which need more than the Info.
func (f Filter) Allows(info Info) bool {
	for _, tag := range f.Tags {
		if !slices.Contains(info.Tags, tag) {
			return false
		}
	}
	return (f.Owner == "" || f.Owner == info.Owner) &&
		(!f.Open || info.Last != canister.KindAssistant) &&
		(f.Since.IsZero() || !info.Changed.Before(f.Since)) &&
		(f.Until.IsZero() || info.Changed.Before(f.Until))
}

// Words are the words of Text, in lower case: what a store without an index
// looks for.
func (f Filter) Words() []string { return strings.Fields(strings.ToLower(f.Text)) }

// TextOf returns what a search looks at in a canister: what is said in it, and
// of invocations the name of the tool and its arguments.
func TextOf(c canister.Canister) string {
	switch c := c.(type) {
	case canister.User:
		return canister.TextOf(c.Content)
	case canister.Assistant:
		return canister.TextOf(c.Content)
	case canister.Supervisor:
		return canister.TextOf(c.Content)
	case canister.Document:
		return c.Title + "\n" + canister.TextOf(c.Content)
	case canister.Invocation:
		return c.Name + "\n" + c.Arguments
	case canister.Result:
		return canister.TextOf(c.Content)
	}
	return ""
}

// Add checks an append to a conversation of which there are length canisters,
// and reports whether there is anything left to do: identity is asked for the
// identities of those that would be in the places of the given ones. It is what
// every Log's Append begins with.
func Add(conversation string, length, expected int, canisters []canister.Canister, identity func(place int) (string, error)) (todo bool, err error) {
	if length == expected {
		return len(canisters) > 0, nil
	}
	conflict := &ConflictError{Conversation: conversation, Expected: expected, Length: length}
	if length < expected+len(canisters) || len(canisters) == 0 {
		return false, conflict
	}
	for i, c := range canisters {
		there, err := identity(expected + i)
		if err != nil {
			return false, err
		}
		if id := c.Header().ID; id == "" || id != there {
			return false, conflict
		}
	}
	return false, nil
}
