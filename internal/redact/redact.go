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

// least is the length from which a secret is looked for, in bytes.
const least = 8

// New returns a function that puts [Mark] in the place of each of the secrets
// in a text. White space around a secret is no part of it; of one with several
// lines each line is a secret too, because logs and errors tear them apart. The
// function may be called concurrently. It is nil if there is nothing to look
// for.
func New(secrets ...string) func(text string) string {
	var forms []string
	for _, secret := range secrets {
		forms = appendForms(forms, secret)
		if strings.Contains(strings.TrimSpace(secret), "\n") {
			for line := range strings.Lines(secret) {
				forms = appendForms(forms, line)
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
	return strings.NewReplacer(pairs...).Replace
}

// appendForms adds the forms in which a secret is looked for.
func appendForms(forms []string, secret string) []string {
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
