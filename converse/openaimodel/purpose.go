// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"maps"

	"github.com/consort-go/consort/converse"
)

// This file decides which of a model's options apply to a request. Most configure the
// model and apply to every request. Some describe the answers of the conversation, and
// would spoil a summary or the answer to a tool.

// answerMembers are the members that are sent only in requests for an answer of the
// conversation, whether an option or Options.ExtraBody sets them. All others are sent
// with every request.
var answerMembers = map[string]bool{
	"text":                true, // the form of an answer in Responses
	"response_format":     true, // otherwise a summary would be an object of that schema
	"stop":                true, // otherwise a summary would end at one of these texts
	"tool_choice":         true,
	"parallel_tool_calls": true,
	"functions":           true,
	"function_call":       true,
	"modalities":          true, // audio answers, with a voice
	"audio":               true,
	"prediction":          true,

	"guided_json": true, "guided_regex": true, "guided_choice": true, "guided_grammar": true, // vLLM
	"structured_outputs": true,                                  // vLLM
	"json_schema":        true, "grammar": true, "schema": true, // llama.cpp, Together
	"format": true,               // Ollama
	"regex":  true, "ebnf": true, // SGLang
}

// optionsFor returns the options that apply to a request with a purpose.
func (m *Model) optionsFor(purpose converse.Purpose) *Options {
	if purpose.Answers() {
		return &m.opts
	}
	o := m.opts
	o.ResponseFormat, o.Stop, o.ToolChoice, o.ParallelToolCalls = nil, nil, "", nil
	o.ExtraBody = maps.Clone(o.ExtraBody)
	maps.DeleteFunc(o.ExtraBody, func(name string, _ any) bool { return answerMembers[name] })
	return &o
}

// extra reports whether the caller sets a member of the body in ExtraBody.
func (o *Options) extra(name string) bool {
	_, given := o.ExtraBody[name]
	return given
}
