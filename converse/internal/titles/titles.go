// SPDX-License-Identifier: Apache-2.0

// Package titles makes the titles of conversations from texts of clients.
package titles

import (
	"strings"
	"unicode"

	"github.com/consort-go/consort/canister"
)

// most bounds the title that a conversation gets from its first message, in characters.
const most = 60

// Line returns the words of a text, without control characters.
func Line(text string) string {
	isBetween := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return strings.Join(strings.FieldsFunc(text, isBetween), " ")
}

// Of returns the beginning of a message as a title.
func Of(user canister.User) string {
	title := []rune(Line(strings.ToValidUTF8(canister.TextOf(user.Content), "")))
	if len(title) <= most {
		return string(title)
	}
	return string(title[:most-1]) + "…"
}
