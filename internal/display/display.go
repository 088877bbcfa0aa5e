// SPDX-License-Identifier: Apache-2.0

// Package display prepares output of models, servers and tools for display. It
// replaces each character that is invisible or controls a terminal by a code, and
// content that is not text by a description. It also counts things in words.
package display

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/consort-go/consort/canister"
)

// Text returns text made safe for a terminal or another reader. Each character
// that [IsInvisible] is replaced by a code such as <U+202E>, because it could
// move the cursor, rename the window, change the direction, or hide what a person
// approves. Joiners stay in emoji and in the scripts that require them.
func Text(text string) string { return Continue(0, text) }

// Continue is like [Text] for text that follows the character before.
func Continue(before rune, text string) string { return visible(before, text, code) }

// Line is like [Text] and replaces each run of white space by one space.
func Line(text string) string { return strings.Join(strings.Fields(Text(text)), " ") }

// Word quotes a text, such as an ID or a path, for a shell of this platform, and sanitizes it for a terminal.
func Word(text string) string { return word(text, runtime.GOOS == "windows") }

func word(text string, windows bool) string {
	text = Text(text)
	plain, special := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-", "-"
	if windows {
		plain, special = plain+`\`, "-@" // @ begins a variable of PowerShell
	}
	switch {
	case text != "" && strings.Trim(text, plain) == "" && !strings.ContainsAny(text[:1], special):
		return text
	case windows:
		last := text[len(strings.TrimRight(text, `\`)):] // programs halve the backslashes before a quote
		return `"` + windowsQuotes.Replace(text) + last + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// windowsQuotes escapes the characters that PowerShell interprets in a text in double quotes. In cmd.exe,
// which has only these quotes, the text then has another form, but is still quoted.
var windowsQuotes = strings.NewReplacer(`"`, `""`, "“", "““", "”", "””", "„", "„„", "$", "`$", "`", "``")

// JSON returns a JSON text, indented and escaped by [EscapeJSON]. If the text is
// not valid JSON, it returns its [Text].
func JSON(text []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return Text(string(text))
	}
	return EscapeJSON(b.String())
}

// Count returns a number and a noun, such as "1 tool" and "2 tools".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Contents returns contents as text for people: text as it is, structured content
// as JSON unless there is also text, and a description of the rest. The result
// has not been passed through [Text].
func Contents(contents []canister.Content) string {
	var parts []string
	hasText := canister.TextOf(contents) != ""
	for _, c := range contents {
		if _, structured := c.(canister.StructuredContent); structured && hasText {
			continue
		}
		parts = append(parts, Content(c))
	}
	return strings.Join(parts, "\n")
}

// Content is like [Contents] for one content.
func Content(content canister.Content) string {
	switch c := content.(type) {
	case canister.TextContent:
		return c.Text
	case canister.StructuredContent:
		return string(c.JSON)
	case canister.ResourceContent:
		if c.Blob != nil {
			return fmt.Sprintf("[resource %s, %s, %d bytes]", c.URI, cmp.Or(c.MIME, "of unknown type"), len(c.Blob))
		}
		return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text)
	case canister.LinkContent:
		return fmt.Sprintf("[link to %s: %s]", cmp.Or(c.Title, c.Name, "a resource"), c.URI)
	default:
		p := canister.PayloadOf(content)
		switch {
		case p.Type == "":
			return fmt.Sprintf("[%T]", content)
		case p.URI != "":
			return fmt.Sprintf("[%s at %s]", p.Type, p.URI)
		}
		return fmt.Sprintf("[%s, %s, %d bytes]", p.Type, p.MIME, len(p.Data))
	}
}
