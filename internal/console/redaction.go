// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/transcript"
	"golang.org/x/net/html"
)

// cleaner removes the secrets of the configuration from a text.
type cleaner func(string) string

// withoutEllipses returns functions that pass the texts before, between and after ellipses on by themselves.
// Redact also removes a piece of a secret next to an ellipsis, as errors shorten texts. On a page, that would tell
// a person who writes guesses with ellipses, such as in the field of a search, how a secret begins.
func withoutEllipses(clean cleaner, part redact.PartFunc) (cleaner, redact.PartFunc) {
	const ellipsis = "…"
	each := func(s string) string {
		pieces := strings.Split(s, ellipsis)
		for i := range pieces {
			pieces[i] = clean(pieces[i])
		}
		return strings.Join(pieces, ellipsis)
	}
	return each, func(text string, last bool) (cleaned, held string) {
		end := 0
		if at := strings.LastIndex(text, ellipsis); at >= 0 {
			end = at + len(ellipsis)
		}
		cleaned, held = part(text[end:], last)
		return each(text[:end]) + cleaned, held
	}
}

// redactTexts removes the secrets from each text and attribute below a node. An address that has one leads
// nowhere. It does not find a secret in a text that was cut or wrapped: such a text must be redacted before.
func (clean cleaner) redactTexts(root *html.Node) {
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			node.Data = clean(node.Data)
			continue
		}
		for i, a := range node.Attr {
			if node.Attr[i].Val = clean(a.Val); node.Attr[i].Val != a.Val && slices.Contains([]string{"href", "action", "src", "data-live"}, a.Key) {
				node.Attr[i].Val = "#"
			}
		}
	}
}

// errorText returns the text of an error without secrets; empty without an error.
func (clean cleaner) errorText(err error) string {
	if err == nil {
		return ""
	}
	return clean(err.Error())
}

// shown returns a text as pages and exports have it: without secrets and invisible characters.
func (clean cleaner) shown(s string) string {
	return display.Text(strings.ToValidUTF8(clean(s), "\uFFFD"))
}

// unlessSecret returns a text that a form can have and send again: none if it has a secret, because
// the form would send the mask.
func (clean cleaner) unlessSecret(s string) string {
	if clean(s) != s {
		return ""
	}
	return s
}

// redactJSON returns JSON, such as the arguments of a call, without secrets. Secrets that are written
// with escapes are found too. It may be given a text that is not JSON.
func (clean cleaner) redactJSON(form string) string {
	if !json.Valid([]byte(form)) {
		return clean(form)
	}
	return string(redact.JSON(json.RawMessage(form), clean))
}

// shownJSON returns JSON for people, without secrets.
func (clean cleaner) shownJSON(form string) string {
	return display.JSON([]byte(clean.redactJSON(form)))
}

// partOf returns a note or a result as a text, with the secrets removed from its JSON.
func (clean cleaner) partOf(n transcript.Numbered) transcript.Part {
	switch e := n.Canister.(type) {
	case canister.Intent:
		e.Arguments = clean.redactJSON(e.Arguments)
		n.Canister = e
	case canister.Wait:
		e.Arguments, e.Question = clean.redactJSON(e.Arguments), json.RawMessage(clean.redactJSON(string(e.Question)))
		n.Canister = e
	case canister.Answer:
		e.Arguments = json.RawMessage(clean.redactJSON(string(e.Arguments)))
		n.Canister = e
	}
	return transcript.PartOf(n, time.UTC)
}

// maskNote explains the mask of secrets, below texts that a person decides about. It is nil
// if nothing was removed.
func maskNote(before, after string) part {
	return when(before != after, el("p", class("faint"), text(redact.Mark+" stands for a secret, which is not shown. It can be another one at each place.")))
}
