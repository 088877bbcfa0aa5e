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

// Allows reports whether a conversation passes everything of the filter but
// Text and Limit, which need more than the Info.
func (f Filter) Allows(info Info) bool {
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

// Words are the words of Text, in lower case: what a store without an index
// looks for.
func (f Filter) Words() []string { return strings.Fields(strings.ToLower(f.Text)) }

// TextOf returns what a search looks at in a canister: what is said in it, and
// of invocations the name of the tool and its arguments.
func TextOf(c canister.Canister) string {
	switch c := c.(type) {
	case canister.Document:
		return c.Title + "\n" + canister.TextOf(c.Content)
	case canister.Invocation:
		return c.Name + "\n" + c.Arguments
	}
	return canister.TextOf(canister.ContentOf(c))
}

// Says reports whether the words of Text stand in the title and the canisters.
// It returns the first error of canisters, of which it reads no more than it
// has to.
func (f Filter) Says(title string, canisters iter.Seq2[canister.Canister, error]) (bool, error) {
	missing := f.Words()
	look := func(text string) bool {
		text = strings.ToLower(text)
		missing = slices.DeleteFunc(missing, func(word string) bool { return strings.Contains(text, word) })
		return len(missing) == 0
	}
	if look(title) {
		return true, nil
	}
	for c, err := range canisters {
		if err != nil {
			return false, err
		}
		if look(TextOf(c)) {
			return true, nil
		}
	}
	return false, nil
}

// Order is the order of List, for slices.SortFunc: what was changed last comes
// first, and the identity decides between those of the same time.
func Order(a, b Info) int {
	return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(a.ID, b.ID))
}

// MaxID is how many bytes the identity of a conversation has at most.
const MaxID = 1024

// CheckID says what is wrong with the identity of a conversation. A good one is
// UTF-8 of 1 to [MaxID] bytes without control characters, so that it is the
// same in every store and stands on one line. Letters of different case are
// different letters.
func CheckID(conversation string) error {
	switch {
	case conversation == "":
		return errors.New("history: the identity of the conversation is empty")
	case len(conversation) > MaxID:
		return fmt.Errorf("history: the identity of the conversation has %d bytes; it may have %d", len(conversation), MaxID)
	case !utf8.ValidString(conversation) || strings.ContainsFunc(conversation, unicode.IsControl):
		return fmt.Errorf("history: the identity %q is not UTF-8 without control characters", conversation)
	}
	return nil
}

// Lines returns the canisters in their JSON form, each without a newline. The
// error is that of [CheckID], or says which canister has no JSON form or one
// that is longer than [canister.MaxLine]; see [canister.Marshal].
func Lines(conversation string, canisters []canister.Canister) ([][]byte, error) {
	if err := CheckID(conversation); err != nil {
		return nil, err
	}
	lines := make([][]byte, len(canisters))
	for i, c := range canisters {
		line, err := canister.Marshal(c)
		if err == nil && len(line) > canister.MaxLine {
			err = fmt.Errorf("its JSON form has %d bytes; it may have %d", len(line), canister.MaxLine)
		}
		if err != nil {
			return nil, fmt.Errorf("history: conversation %q: canister %d of those to append: %w", conversation, i+1, err)
		}
		lines[i] = line
	}
	return lines, nil
}

// CheckDelete says with a [*ConflictError] why a conversation that has length
// canisters is not to be deleted by somebody who expects another number of them.
// It is what every Store's Delete begins with, once nobody else can append.
func CheckDelete(conversation string, length, expected int) error {
	if expected < 0 || expected == length {
		return nil
	}
	return &ConflictError{Conversation: conversation, Expected: expected, Length: length}
}

// CheckAppend says what an append is to do in a conversation that has length
// canisters, if its writer expects another number of them or the same: add the
// canisters, which is todo; nothing, since they are there already or there are
// none; or fail with a [*ConflictError]. identity is asked for the identities of
// those that stand where the canisters would, and its error is passed on. It is
// what every Log's Append begins with, behind [Lines] and once nobody else can
// append.
func CheckAppend(conversation string, length, expected int, canisters []canister.Canister, identity func(place int) (string, error)) (todo bool, err error) {
	if length == expected {
		return len(canisters) > 0, nil
	}
	conflict := &ConflictError{Conversation: conversation, Expected: expected, Length: length}
	if expected < 0 || length-expected < len(canisters) || len(canisters) == 0 {
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
