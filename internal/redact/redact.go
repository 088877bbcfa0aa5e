// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Mark is what stands in the place of a secret.
const Mark = "[secret]"

// The length from which a secret is looked for, in bytes.
const (
	least     = 8 // in any text
	leastSent = 6 // in what the other side of a connection says
)

// What is known of texts that were shortened.
const (
	ellipsis     = "…"
	leastPiece   = 4 // bytes of a secret beside the ellipsis
	maxShortened = 16 << 10
)

// New returns a function that puts [Mark] in the place of each of the secrets
// in a text, and of what is left of one where a text was shortened with an
// ellipsis. White space around a secret is no part of it; of one with several
// lines each line is a secret too, because logs and errors tear them apart. The
// function may be called concurrently. It is nil if there is nothing to look
// for.
func New(secrets ...string) func(text string) string {
	return newCleaner(least, secrets)
}

// Sent is [New] for what was sent to a server, such as the values of headers, in a
// text in which the server may repeat it: a secret of 6 bytes is looked for too, and
// what follows the scheme of "Bearer TOKEN" also by itself. It is never nil.
func Sent(values ...string) func(text string) string {
	secrets := slices.Clone(values)
	for _, value := range values {
		_, token, _ := strings.Cut(value, " ")
		secrets = append(secrets, token)
	}
	if clean := newCleaner(leastSent, secrets); clean != nil {
		return clean
	}
	return func(text string) string { return text }
}

func newCleaner(least int, secrets []string) func(text string) string {
	var forms []string
	for _, secret := range secrets {
		forms = appendForms(forms, secret, least)
		if strings.Contains(strings.TrimSpace(secret), "\n") {
			for line := range strings.Lines(secret) {
				forms = appendForms(forms, line, least)
			}
		}
	}
	if forms == nil {
		return nil
	}
	// Of two that begin at the same place the longer one counts, or the rest of
	// it would stay. A Replacer tries them in the order of its arguments.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, Mark)
	}
	whole := strings.NewReplacer(pairs...)
	return func(text string) string { return withoutPieces(whole.Replace(text), forms) }
}

// withoutPieces puts [Mark] in the place of the beginning of a secret before an
// ellipsis, and of the end of one after it: errors shorten what servers say,
// and do not look where. A long text is no such error.
func withoutPieces(text string, forms []string) string {
	if len(text) > maxShortened || !strings.Contains(text, ellipsis) {
		return text
	}
	parts := strings.Split(text, ellipsis)
	for i := range parts {
		if i < len(parts)-1 {
			if n := longest(forms, func(form string, n int) bool { return strings.HasSuffix(parts[i], form[:n]) }); n > 0 {
				parts[i] = parts[i][:len(parts[i])-n] + Mark
			}
		}
		if i > 0 {
			if n := longest(forms, func(form string, n int) bool { return strings.HasPrefix(parts[i], form[len(form)-n:]) }); n > 0 {
				parts[i] = Mark + parts[i][n:]
			}
		}
	}
	return strings.Join(parts, ellipsis)
}

// longest returns the length of the longest piece of a form that is there.
func longest(forms []string, there func(form string, n int) bool) int {
	found := leastPiece - 1
	for _, form := range forms {
		for n := len(form) - 1; n > found; n-- {
			if there(form, n) {
				found = n
			}
		}
	}
	if found < leastPiece {
		return 0
	}
	return found
}

// appendForms adds the forms in which a secret of at least so many bytes is looked for.
func appendForms(forms []string, secret string, least int) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < least {
		return forms
	}
	escaped := quote(secret, false)
	inner := escaped[1 : len(escaped)-1]
	asHTML := quote(secret, true)
	asGo := strconv.Quote(secret)
	bytes := []byte(secret)
	return append(forms,
		secret,
		url.QueryEscape(secret), url.PathEscape(secret),
		inner, strings.ReplaceAll(inner, "/", `\/`), // as PHP writes JSON
		asHTML[1:len(asHTML)-1], asGo[1:len(asGo)-1],
		base64.StdEncoding.EncodeToString(bytes), base64.RawStdEncoding.EncodeToString(bytes),
		base64.URLEncoding.EncodeToString(bytes), base64.RawURLEncoding.EncodeToString(bytes))
}

// quote writes text as a JSON string.
func quote(text string, escapeHTML bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(text) // a string has a JSON form
	return strings.TrimSuffix(b.String(), "\n")
}
