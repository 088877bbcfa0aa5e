// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"maps"
	"math"
	"strconv"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
)

// This file writes the members of a request body after the messages.

// fieldsFor returns the members of a request after its messages, except the tools.
func (m *Model) fieldsFor(request *converse.Request) (string, error) {
	if !m.usageRefused.Load() && request.Purpose.Answers() && request.MaxTokens <= 0 && request.Temperature == nil && len(request.Stop) == 0 {
		return m.fields, nil
	}
	o := *m.optionsFor(request.Purpose)
	o.NoStreamUsage = o.NoStreamUsage || m.usageRefused.Load()
	if n := request.MaxTokens; n > 0 && (o.MaxTokens == 0 || n < int64(o.MaxTokens)) && !o.extra("max_tokens") && !o.extra("max_completion_tokens") {
		o.MaxTokens = int(min(n, math.MaxInt))
	}
	if request.Temperature != nil {
		o.Temperature = request.Temperature
	}
	if len(request.Stop) > 0 {
		o.Stop = request.Stop
	}
	return o.fields(m.name)
}

// fields returns the members of a request that the options set, each preceded by a comma,
// in a fixed order.
func (o *Options) fields(model string) (string, error) {
	fields := map[string]any{}
	if !o.NoStream && !o.NoStreamUsage {
		fields["stream_options"] = map[string]any{"include_usage": true}
	}
	if o.Temperature != nil {
		fields["temperature"] = *o.Temperature
	}
	if o.TopP != nil {
		fields["top_p"] = *o.TopP
	}
	if o.MaxTokens > 0 {
		fields[o.MaxTokensField] = o.MaxTokens
	}
	if len(o.Stop) > 0 {
		fields["stop"] = o.Stop
	}
	if o.Seed != nil {
		fields["seed"] = *o.Seed
	}
	if o.ReasoningEffort != "" {
		fields["reasoning_effort"] = o.ReasoningEffort
	}
	if o.ServiceTier != "" {
		fields["service_tier"] = o.ServiceTier
	}
	if o.PromptCacheKey != "" {
		fields["prompt_cache_key"] = o.PromptCacheKey
	}
	if o.ResponseFormat != nil {
		fields["response_format"] = o.ResponseFormat.field()
	}
	maps.Copy(fields, o.ExtraBody)
	delete(fields, "tool_choice") // stands after the tools, and only with them
	fields["model"] = model
	if !o.NoStream {
		fields["stream"] = true
	}
	return jsontext.Fields(fields)
}

// name returns the name of the schema.
func (f *ResponseFormat) name() string { return cmp.Or(f.Name, "answer") }

// field returns the response_format of a request.
func (f *ResponseFormat) field() any {
	if len(f.Schema) == 0 {
		return map[string]any{"type": "json_object"}
	}
	schema := map[string]any{"name": f.name(), "schema": f.Schema}
	if f.Description != "" {
		schema["description"] = f.Description
	}
	if f.Strict {
		schema["strict"] = true
	}
	return map[string]any{"type": "json_schema", "json_schema": schema}
}

// forces reports whether a request must force a call and the server has not refused that.
func (m *Model) forces(request *converse.Request) bool {
	return request.RequireInvocation && !m.unforced.Load()
}

// refusesForce reports whether the server has refused to force a call, which the model then
// no longer asks for.
func (m *Model) refusesForce(failed *converse.ModelError) bool {
	if !modelapi.RefusesForce(failed) {
		return false
	}
	m.unforced.Store(true)
	return true
}

// appendTail appends the rest of a body after its messages, beginning with fields. tools
// is nil if no tools are offered.
func (m *Model) appendTail(dst []byte, request *converse.Request, forced bool, fields string, tools []byte) []byte {
	dst = append(append(dst, ']'), fields...)
	if tools == nil {
		return append(dst, '}')
	}
	dst = append(dst, tools...)
	o := m.optionsFor(request.Purpose)
	if o.ParallelToolCalls != nil && !o.extra("parallel_tool_calls") {
		dst = strconv.AppendBool(jsontext.AppendName(dst, "parallel_tool_calls"), *o.ParallelToolCalls)
	}
	switch choice := o.ToolChoice; {
	case request.NoInvocations:
		dst = jsontext.AppendMember(dst, "tool_choice", "none")
	case o.extra("tool_choice"):
		value, _ := jsontext.Encode(o.ExtraBody["tool_choice"]) // settle has encoded it before
		dst = append(jsontext.AppendName(dst, "tool_choice"), value...)
	case forced:
		dst = jsontext.AppendMember(dst, "tool_choice", "required")
	case request.RequireInvocation: // the server leaves it to the model
	case choice == "auto" || choice == "none" || choice == "required":
		dst = jsontext.AppendMember(dst, "tool_choice", choice)
	case choice != "" && m.opts.API == apiResponses:
		dst = jsontext.AppendMember(append(jsontext.AppendName(dst, "tool_choice"), `{"type":"function"`...), "name", choice)
		dst = append(dst, '}')
	case choice != "":
		dst = jsontext.AppendMember(append(jsontext.AppendName(dst, "tool_choice"), `{"type":"function","function":{`...), "name", choice)
		dst = append(dst, "}}"...)
	}
	return append(dst, '}')
}

// appendTool appends one tool with its adapted schema. strict is never sent, as it would
// make optional arguments mandatory.
func (m *Model) appendTool(dst []byte, definition *invoker.Definition) ([]byte, error) {
	if err := m.limits.CheckName(definition.Name); err != nil {
		return dst, err
	}
	parameters, note, err := toolschema.Adapt(definition.InputSchema, *m.opts.InlineRefs)
	if err != nil {
		return dst, err
	}
	if m.modern {
		parameters = toolschema.WithoutLookaround(parameters)
	}
	description, _ := m.limits.Describe(definition, note)
	if m.opts.API == apiResponses {
		dst = append(dst, `{"type":"function"`...)
	} else {
		dst = append(dst, `{"type":"function","function":{`...)
	}
	dst = jsontext.AppendMember(dst, "name", definition.Name)
	if description != "" {
		dst = jsontext.AppendMember(dst, "description", description)
	}
	dst = append(jsontext.AppendName(dst, "parameters"), parameters...)
	if m.opts.API == apiResponses { // whose default is strict
		return append(strconv.AppendBool(jsontext.AppendName(dst, "strict"), m.enforced.Can(parameters)), '}'), nil
	}
	return append(dst, "}}"...), nil
}
