// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/invoker"
)

// Limits are the limits of a server for one request. 0 means that no limit is known.
type Limits struct {
	Tools       int  // number of definitions
	Description int  // characters per description, in UTF-16 code units
	letterFirst bool // names must begin with a letter or an underscore
}

// providerLimits has the limits of servers, by provider name as in providers. Names of
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
var providerLimits = map[string]Limits{
	"openai":             {Tools: 128, Description: 1024},
	"azure.ai.openai":    {Tools: 128, Description: 1024},
	"azure.ai.inference": {Tools: 128, Description: 1024},
	"groq":               {Tools: 128},
	"deepseek":           {Tools: 128},
	"x_ai":               {Tools: 200},
	"gcp.gemini":         {Tools: 512, letterFirst: true},
	"gcp.vertex_ai":      {Tools: 128, letterFirst: true},
}

// LimitsOf returns the known limits of a provider, as [ProviderOf] names it.
func LimitsOf(provider string) Limits { return providerLimits[provider] }

// With returns the limits with those that are set: 0 means the known limit, and a negative
// number no limit.
func (l Limits) With(tools, description int) Limits {
	l.Tools = max(0, cmp.Or(tools, l.Tools))
	l.Description = max(0, cmp.Or(description, l.Description))
	return l
}

// Shortened describes what is shortened in a tool for the server, as a clause. It returns
// "" if the whole tool is sent.
func (l Limits) Shortened(definition *invoker.Definition, inlineRefs bool) string {
	_, note, err := toolschema.Adapt(definition.InputSchema, inlineRefs)
	if err != nil {
		return ""
	}
	_, cut := l.Describe(definition, note)
	if cut == 0 {
		return ""
	}
	return fmt.Sprintf("its description is too long for the model's server, which takes %d characters (max_description): %d are left out", l.Description, cut)
}

// CheckName returns the reason why the server does not accept the name of a tool.
func (l Limits) CheckName(name string) error {
	if l.letterFirst && (name == "" || name[0] >= '0' && name[0] <= '9' || name[0] == '-') {
		return errors.New("the model's server wants its name to begin with a letter or an underscore; give its server another name")
	}
	return nil
}

// Describe returns the description of a tool with the note about its schema, and the
// number of characters that were left out. The text says where it was cut.
func (l Limits) Describe(definition *invoker.Definition, note string) (text string, cut int) {
	text = cmp.Or(definition.Description, definition.Title)
	if l.Description == 0 {
		return joined(text, note), 0
	}
	if units(note) > l.Description/2 {
		cut, note = units(note), toolschema.LongNote
		if units(note) > l.Description/2 {
			note = ""
		}
	}
	if whole := joined(text, note); units(whole) <= l.Description {
		return whole, cut
	}
	room := l.Description
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
