// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
)

// Match reports whether a conversation matches all fields of the filter except Text
// and Limit, which need more than the Info.
func (f Filter) Match(info Info) bool {
	for _, tag := range f.Tags {
		if !slices.Contains(info.Tags, tag) {
			return false
		}
	}
	return (f.Owner == "" || f.Owner == info.Owner) &&
		(!f.Open || info.Last != "" && info.Last != canister.KindAssistant) &&
		(f.Since.IsZero() || !info.Changed.Before(f.Since)) &&
		(f.Until.IsZero() || info.Changed.Before(f.Until))
}

// Words returns the words of Text in lower case. A store without an index searches for
// them.
func (f Filter) Words() []string { return strings.Fields(strings.ToLower(f.Text)) }

// TextOf returns the text of a canister that a search examines: its content, and for
// invocations the name of the tool and the arguments.
func TextOf(c canister.Canister) string {
	switch c := c.(type) {
	case canister.Document:
		return c.Title + "\n" + canister.TextOf(c.Content)
	case canister.Invocation:
		return c.Name + "\n" + c.Arguments
	}
	return canister.TextOf(canister.ContentOf(c))
}

// MatchText reports whether all words of Text occur in the title or the canisters. It
// stops reading canisters as soon as the result is known, and returns the first error
// that they yield.
func (f Filter) MatchText(title string, canisters iter.Seq2[canister.Canister, error]) (bool, error) {
	missing := f.Words()
	find := func(text string) bool {
		text = strings.ToLower(text)
		missing = slices.DeleteFunc(missing, func(word string) bool { return strings.Contains(text, word) })
		return len(missing) == 0
	}
	if find(title) {
		return true, nil
	}
	for c, err := range canisters {
		if err != nil {
			return false, err
		}
		if find(TextOf(c)) {
			return true, nil
		}
	}
	return false, nil
}

// Compare compares by the order of List: the most recently changed first, then by ID.
// The method expression Info.Compare is for slices.SortFunc.
func (i Info) Compare(other Info) int {
	return cmp.Or(other.Changed.Compare(i.Changed), cmp.Compare(i.ID, other.ID))
}

// MaxID is the maximum length of a conversation ID in bytes.
const MaxID = 1024

// CheckID returns an error if a conversation ID is invalid. A valid one is
// UTF-8 of 1 to [MaxID] bytes without control characters, so that it is the same in
// every store and fits on one line. Case matters.
func CheckID(conversation string) error {
	switch {
	case conversation == "":
		return errors.New("history: the ID of the conversation is empty")
	case len(conversation) > MaxID:
		return fmt.Errorf("history: the ID of the conversation has %d bytes; at most %d are allowed", len(conversation), MaxID)
	case !utf8.ValidString(conversation) || strings.ContainsFunc(conversation, unicode.IsControl):
		return fmt.Errorf("history: the ID %q is not valid UTF-8, or has control characters", conversation)
	}
	return nil
}

// MarshalAll returns the canisters in their JSON form, each without a newline. The error
// is the one of [CheckID], or names the canister that has no JSON form or one longer
// than [canister.MaxLine]; see [canister.Marshal].
func MarshalAll(conversation string, canisters []canister.Canister) ([][]byte, error) {
	if err := CheckID(conversation); err != nil {
		return nil, err
	}
	lines := make([][]byte, len(canisters))
	for i, c := range canisters {
		line, err := canister.Marshal(c)
		if err == nil && len(line) > canister.MaxLine {
			err = fmt.Errorf("its JSON form has %d bytes; at most %d are allowed", len(line), canister.MaxLine)
		}
		if err != nil {
			return nil, fmt.Errorf("history: conversation %q: canister %d of those to append: %w", conversation, i+1, err)
		}
		lines[i] = line
	}
	return lines, nil
}

// CheckDelete returns a [*ConflictError] if a conversation that has length canisters
// must not be deleted because the caller expects another number. The Delete of every
// Store begins with it, while it excludes other writers.
func CheckDelete(conversation string, length, expected int) error {
	if expected < 0 || expected == length {
		return nil
	}
	return &ConflictError{Conversation: conversation, Expected: expected, Length: length}
}

// CheckAppend decides what an append does in a conversation that has length canisters
// while its writer expects a number of them. If todo is true, the canisters
// must be added. If todo is false and err is nil, there is nothing to do, because
// canisters is empty or already there. Otherwise err is a [*ConflictError]. CheckAppend
// calls identity for the IDs of the existing canisters at the same indexes and
// passes on its error. The Append of every Log begins with it, after [MarshalAll] and while
// it excludes other writers.
func CheckAppend(conversation string, length, expected int, canisters []canister.Canister, identity func(index int) (string, error)) (todo bool, err error) {
	if length == expected {
		return len(canisters) > 0, nil
	}
	conflict := &ConflictError{Conversation: conversation, Expected: expected, Length: length}
	if expected < 0 || length-expected < len(canisters) || len(canisters) == 0 {
		return false, conflict
	}
	for i, c := range canisters {
		existing, err := identity(expected + i)
		if err != nil {
			return false, err
		}
		if id := c.Header().ID; id == "" || id != existing {
			return false, conflict
		}
	}
	return false, nil
}
