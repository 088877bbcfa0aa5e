// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"unicode/utf16"

	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/invoker"
)

// limits are the limits of a server for one request. 0 means that no limit is known.
type limits struct {
	tools       int  // number of definitions
	description int  // characters per description, in UTF-16 code units
	letterFirst bool // names must begin with a letter or an underscore
}

// providerLimits has the limits of servers, by provider name as in [providers]. Names of
// at most 64 characters (letters, digits, "_" and "-") are valid everywhere;
// ensemble.NameFor ensures this. Sources, looked up on 2026-11-22:
//
//   - openai: the errors array_above_max_length of "tools" and
//     string_above_max_length of "function.description" (getsentry/sentry-mcp#106,
//     zed-industries/zed#32946); openai/openai-openapi#76
//   - azure.ai.openai, azure.ai.inference: the same API; Azure OpenAI, Quotas and
//     limits
//   - groq: "'tools' : maximum number of items is 128" (gsd-build/gsd-2#4376)
//   - deepseek: API reference, Create Chat Completion, tools
//   - x_ai: "the maximum is 200" (anomalyco/opencode#28911)
//   - gcp.gemini: "At most 512 function declarations"
//     (google-gemini/gemini-cli#19083), and names (kaitranntt/ccs#25)
//   - gcp.vertex_ai: googleapis/google-cloud-dotnet#13783
//
// No limits were found for the other providers in the table, neither in their references
// nor in reports of rejected requests. For Anthropic it is only known that names may have
// 128 characters (anthropics/claude-code#96152) and that strict tools, which are not sent
// to it, are limited (camel-ai/camel#4171). For Mistral and OpenRouter nothing is known.
// OpenRouter forwards requests to providers that have their own limits.
var providerLimits = map[string]limits{
	"openai":             {tools: 128, description: 1024},
	"azure.ai.openai":    {tools: 128, description: 1024},
	"azure.ai.inference": {tools: 128, description: 1024},
	"groq":               {tools: 128},
	"deepseek":           {tools: 128},
	"x_ai":               {tools: 200},
	"gcp.gemini":         {tools: 512, letterFirst: true},
	"gcp.vertex_ai":      {tools: 128, letterFirst: true},
}

// limitsOf returns the limits of the server at base. Limits in the options take
// precedence.
func limitsOf(o *Options, base *url.URL) limits {
	l := providerLimits[providerOf(base)]
	l.tools = max(0, cmp.Or(o.MaxTools, l.tools))
	l.description = max(0, cmp.Or(o.MaxDescription, l.description))
	return l
}

// MaxTools returns how many tools the server accepts in a request; 0 if no limit is
// known. See [Options].MaxTools.
func (m *Model) MaxTools() int { return m.limits.tools }

// Shortened describes what is shortened in a tool for the server, as a clause. It returns
// "" if the whole tool is sent.
func (m *Model) Shortened(definition *invoker.Definition) string {
	_, note, err := toolschema.Adapt(definition.InputSchema, *m.opts.InlineRefs)
	if err != nil {
		return ""
	}
	_, cut := m.limits.describe(definition, note)
	if cut == 0 {
		return ""
	}
	return fmt.Sprintf("its description is too long for the model's server, which takes %d characters (max_description): %d are left out", m.limits.description, cut)
}

// checkName returns the reason why the server does not accept the name of a tool.
func (l limits) checkName(name string) error {
	if l.letterFirst && (name == "" || name[0] >= '0' && name[0] <= '9' || name[0] == '-') {
		return errors.New("the model's server wants its name to begin with a letter or an underscore; give its server another name")
	}
	return nil
}

// describe returns the description of a tool with the note about its schema, and the
// number of characters that were left out. The text says where it was cut.
func (l limits) describe(definition *invoker.Definition, note string) (text string, cut int) {
	text = cmp.Or(definition.Description, definition.Title)
	if l.description == 0 {
		return joined(text, note), 0
	}
	if units(note) > l.description/2 {
		cut, note = units(note), toolschema.LongNote
		if units(note) > l.description/2 {
			note = ""
		}
	}
	if whole := joined(text, note); units(whole) <= l.description {
		return whole, cut
	}
	room := l.description
	if note != "" {
		room -= units(note) + 2
	}
	text, left := cutDescription(text, room)
	return joined(text, note), cut + left
}

func joined(text, note string) string {
	if text == "" || note == "" {
		return text + note
	}
	return text + "\n\n" + note
}

// cutDescription cuts a text to room code units, including a mark with the number of
// characters that were left out.
func cutDescription(text string, room int) (string, int) {
	const mark = " [cut: %d characters left out]"
	all := units(text)
	keep := max(0, room-len(fmt.Sprintf(mark, all)))
	kept := 0
	for i, r := range text {
		n := max(1, utf16.RuneLen(r))
		if kept+n > keep {
			text = text[:i]
			break
		}
		kept += n
	}
	if said := fmt.Sprintf(mark, all-kept); len(said) <= room {
		return text + said, all - kept
	}
	return text, all - kept
}

// units counts the UTF-16 code units of a text. No server counts more characters.
func units(text string) (n int) {
	for _, r := range text {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}
