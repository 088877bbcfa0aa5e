// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/dedupe"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/tokenestimate"
)

// digestLine is a message as the summarising model receives it. Everything is inside
// JSON strings, so that no text can pass for another message.
type digestLine struct {
	From      string `json:"from"`
	Title     string `json:"title,omitzero"`
	Tool      string `json:"tool,omitzero"`
	Arguments string `json:"arguments,omitzero"`
	Failed    string `json:"failed,omitzero"`
	Text      string `json:"text,omitzero"`
}

// Digest returns the older part of a conversation for the summarising model: the
// messages as a model received them, without instructions, with results cut to trim
// bytes. If that is longer than most bytes, all texts are cut further.
func Digest(told []canister.Canister, trim, most int) string {
	const least = 64 // bytes of a text
	for text := most; ; trim, text = trim/2, text/2 {
		out := digestLines(told, trim, text)
		if len(out) <= most || text < least {
			return out
		}
	}
}

func digestLines(told []canister.Canister, trim, most int) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	tools := map[string]string{}
	for _, c := range told {
		line := digestLine{From: string(c.Kind())}
		switch c := c.(type) {
		case canister.Supervisor:
			continue
		case canister.Document:
			if IsInstructions(c) { // they are added again after the summary
				continue
			}
			if line.Title = Shortened(c.Title, most); c.Metadata[notes.CompactionKey] != nil {
				line.From, line.Title = "summary", ""
			}
		case canister.Invocation:
			tools[c.ID] = c.Name
			line = digestLine{From: "assistant", Tool: Shortened(c.Name, most), Arguments: Shortened(c.Arguments, most)}
		case canister.Result:
			line = digestLine{From: "tool", Tool: Shortened(tools[c.Invocation], most), Failed: c.Code, Text: said(c.Content, trim)}
		}
		if line.From != "tool" {
			line.Text = said(canister.ContentOf(c), most)
		}
		if line.Text != "" || line.Tool != "" {
			_ = encoder.Encode(line) // into a buffer, of strings
		}
	}
	return out.String()
}

// said returns contents as text of at most that many bytes. Other contents are replaced
// by their names.
func said(contents []canister.Content, most int) string {
	texts := make([]string, 0, len(contents))
	for _, c := range dedupe.Contents(contents) {
		switch c := c.(type) {
		case canister.TextContent:
			texts = append(texts, c.Text)
		case canister.StructuredContent:
			texts = append(texts, string(c.JSON))
		case canister.ResourceContent:
			texts = append(texts, "["+bounds.Describe(c)+"]")
			if c.Blob == nil {
				texts = append(texts, c.Text)
			}
		default:
			texts = append(texts, "["+bounds.Describe(c)+"]")
		}
	}
	return Shortened(strings.Join(texts, "\n"), most)
}

// Shortened cuts a text to at most that many bytes, and appends a note if it cut it.
func Shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := textcut.Prefix(text, most)
	return fmt.Sprintf("%s [%d bytes omitted]", kept, len(text)-len(kept))
}

// digestTokens estimates the tokens of a canister in a digest.
func digestTokens(c canister.Canister, trim int) int64 {
	const line = 16
	tokens := TokensOf(c)
	if c.Kind() == canister.KindResult {
		return min(tokens, tokenestimate.InText(trim)) + line
	}
	return tokens + line
}

// DigestTrim returns the size in bytes that a digest cuts results to.
func (o Options) DigestTrim() int {
	if o.Trim < 0 {
		return defaultCompactTrim
	}
	return o.Trim
}
