// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Mark replaces a secret.
const Mark = "[secret]"

// The minimum length of a secret, in bytes.
const (
	least     = 8 // in any text
	leastSent = 6 // in text from the other side of a connection
)

// Limits for texts that were shortened with an ellipsis.
const (
	ellipsis     = "…"
	leastPiece   = 4 // minimum length of a partial secret next to the ellipsis, in bytes
	maxShortened = 16 << 10
)

// New returns a function that replaces each of the secrets in a text by [Mark],
// and also the remains of a secret in a text that was shortened with an ellipsis.
// White space around a secret is ignored. Each line of a secret with several
// lines is a secret too, because logs and errors split lines. The function may be
// called concurrently. It is nil if there is nothing to search for.
func New(secrets ...string) func(text string) string {
	if c := newCleaner(least, secrets); c != nil {
		return c.text
	}
	return nil
}

// Sent is like [New] for values that were sent to a server, such as those of
// headers, and that the server may repeat in its text. It also searches for
// shorter secrets, from 6 bytes, and for the part after the scheme of "Bearer
// TOKEN" by itself. It never returns nil.
func Sent(values ...string) func(text string) string {
	secrets := slices.Clone(values)
	for _, value := range values {
		_, token, _ := strings.Cut(value, " ")
		secrets = append(secrets, token)
	}
	return newCleaner(leastSent, secrets).text
}

// cleaner searches for secrets. A nil cleaner searches for nothing.
type cleaner struct {
	forms []string // of the secrets, the longest first
	whole *strings.Replacer
	first map[byte][]string // the forms by their first byte; nil before index

	once         sync.Once           // makes heads and tails
	heads, tails map[string][]string // the forms by their first and by their last bytes, leastPiece of each
}

func newCleaner(least int, secrets []string) *cleaner {
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
	// If two forms begin at the same position, the longer one has to match, or the
	// rest of it would remain. A Replacer tries them in the order of its arguments.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	c := &cleaner{forms: slices.Compact(forms)}
	pairs := make([]string, 0, 2*len(c.forms))
	for _, form := range c.forms {
		pairs = append(pairs, form, Mark)
	}
	c.whole = strings.NewReplacer(pairs...)
	return c
}

// text returns text without the secrets.
func (c *cleaner) text(text string) string {
	if c == nil {
		return text
	}
	return c.withoutPieces(c.whole.Replace(text))
}

// withoutPieces replaces by [Mark] the beginning of a secret before an ellipsis
// and the end of one after it: errors shorten what servers say at any position.
// Long texts are skipped, because they are not such errors.
func (c *cleaner) withoutPieces(text string) string {
	if len(text) > maxShortened || !strings.Contains(text, ellipsis) {
		return text
	}
	c.once.Do(func() {
		c.heads, c.tails = map[string][]string{}, map[string][]string{}
		for _, form := range c.forms {
			head, tail := form[:leastPiece], form[len(form)-leastPiece:]
			c.heads[head], c.tails[tail] = append(c.heads[head], form), append(c.tails[tail], form)
		}
	})
	parts := strings.Split(text, ellipsis)
	for i := range parts {
		if i < len(parts)-1 {
			if n := c.beginning(parts[i]); n > 0 {
				parts[i] = parts[i][:len(parts[i])-n] + Mark
			}
		}
		if i > 0 {
			if n := c.end(parts[i]); n > 0 {
				parts[i] = Mark + parts[i][n:]
			}
		}
	}
	return strings.Join(parts, ellipsis)
}

// beginning returns the length of the longest beginning of a form at the end of a text, or 0.
func (c *cleaner) beginning(text string) int {
	for n := min(len(text), len(c.forms[0])-1); n >= leastPiece; n-- {
		piece := text[len(text)-n:]
		for _, form := range c.heads[piece[:leastPiece]] {
			if n < len(form) && strings.HasPrefix(form, piece) {
				return n
			}
		}
	}
	return 0
}

// end returns the length of the longest end of a form at the beginning of a text, or 0.
func (c *cleaner) end(text string) int {
	for n := min(len(text), len(c.forms[0])-1); n >= leastPiece; n-- {
		for _, form := range c.tails[text[n-leastPiece:n]] {
			if n < len(form) && strings.HasSuffix(form, text[:n]) {
				return n
			}
		}
	}
	return 0
}

// appendForms appends the forms of a secret to search for, if it has at least
// least bytes.
func appendForms(forms []string, secret string, least int) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < least {
		return forms
	}
	escaped := quote(secret, false)
	inner := escaped[1 : len(escaped)-1]
	asHTML := quote(secret, true)
	asGo := strconv.Quote(secret)
	slashes := strings.ReplaceAll(inner, "/", `\/`) // as PHP writes JSON
	for _, hex := range []string{`\u%04x`, `\u%04X`} {
		forms = append(forms, ascii(inner, "", hex), ascii(slashes, "", hex),
			ascii(strings.ReplaceAll(inner, `\"`, fmt.Sprintf(hex, '"')), "+&<>'`", hex)) // as .NET writes JSON
	}
	query := url.QueryEscape(secret)
	component := strings.ReplaceAll(query, "+", "%20") // as PHP's rawurlencode and .NET write it
	for _, form := range []string{query, url.PathEscape(secret), component,
		strings.ReplaceAll(component, "%2F", "/"),                                                          // Python's quote
		strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(component), // JavaScript's encodeURIComponent
	} {
		forms = append(forms, form, lowerPercent(form))
	}
	bytes := []byte(secret)
	return append(forms,
		secret,
		inner, slashes, asHTML[1:len(asHTML)-1], asGo[1:len(asGo)-1],
		base64.StdEncoding.EncodeToString(bytes), base64.RawStdEncoding.EncodeToString(bytes),
		base64.URLEncoding.EncodeToString(bytes), base64.RawURLEncoding.EncodeToString(bytes))
}

// ascii writes the characters of a JSON text that are in set or outside of ASCII as
// escapes with the format hex.
func ascii(text, set, hex string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf && !strings.ContainsRune(set, r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, hex, unit)
		}
	}
	return b.String()
}

// lowerPercent writes the escapes of a URL with lower-case digits.
func lowerPercent(text string) string {
	escaped := []byte(text)
	for i, c := range escaped {
		if c == '%' {
			copy(escaped[i:], bytes.ToLower(escaped[i:i+3]))
		}
	}
	return string(escaped)
}

// quote writes text as a JSON string.
func quote(text string, escapeHTML bool) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(text) // a string always has a JSON form
	return strings.TrimSuffix(b.String(), "\n")
}
