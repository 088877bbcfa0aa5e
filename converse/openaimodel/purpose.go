// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"maps"

	"github.com/consort-go/consort/converse"
)

// This file says which of a model's options go with a request. Most say how the
// model works and belong to every request; some say what an answer of the
// conversation looks like, and would spoil a summary or the answer to a tool.

// answerMembers are the members of a request that only one for an answer of the
// conversation has, whether an option or Options.ExtraBody gives them. All others
// go with every request.
var answerMembers = map[string]bool{
	"response_format":     true, // a summary would be an object of that schema
	"stop":                true, // and would end at the first of these texts
	"tool_choice":         true,
	"parallel_tool_calls": true,
	"functions":           true,
	"function_call":       true,
	"modalities":          true, // an answer in sound, and its voice
	"audio":               true,
	"prediction":          true,

	"guided_json": true, "guided_regex": true, "guided_choice": true, "guided_grammar": true, // vLLM
	"structured_outputs": true,                                  // vLLM
	"json_schema":        true, "grammar": true, "schema": true, // llama.cpp, Together
	"format": true,               // Ollama
	"regex":  true, "ebnf": true, // SGLang
}

// optionsFor returns the options that go with a request of a purpose.
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

// extra reports whether the caller gives a member of the body himself.
func (o *Options) extra(name string) bool {
	_, given := o.ExtraBody[name]
	return given
}
