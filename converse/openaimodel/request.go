// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/jsontext"
	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/internal/event"
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

// appendTail appends the rest of a body after its messages, beginning with fields. tools
// is nil if no tools are offered.
func (m *Model) appendTail(dst []byte, request *converse.Request, fields string, tools *encodedTools) []byte {
	dst = append(append(dst, ']'), fields...)
	if tools == nil {
		return append(dst, '}')
	}
	dst = append(dst, tools.text...)
	o := m.optionsFor(request.Purpose)
	if o.ParallelToolCalls != nil && !o.extra("parallel_tool_calls") {
		dst = strconv.AppendBool(jsontext.AppendName(dst, "parallel_tool_calls"), *o.ParallelToolCalls)
	}
	switch choice := o.ToolChoice; {
	case o.extra("tool_choice") && !request.NoInvocations:
	case request.NoInvocations:
		dst = jsontext.AppendMember(dst, "tool_choice", "none")
	case request.RequireInvocation:
		dst = jsontext.AppendMember(dst, "tool_choice", "required")
	case choice == "auto" || choice == "none" || choice == "required":
		dst = jsontext.AppendMember(dst, "tool_choice", choice)
	case choice != "":
		dst = jsontext.AppendMember(append(jsontext.AppendName(dst, "tool_choice"), `{"type":"function","function":{`...), "name", choice)
		dst = append(dst, "}}"...)
	}
	return append(dst, '}')
}

// maxToolCache limits the number of cached toolsets. A model that serves several rosters
// uses a few at a time.
const maxToolCache = 8

// encodedTools is the tools member of a request for one toolset.
type encodedTools struct {
	set  *converse.Toolset
	text []byte // begins with a comma
}

// encode returns the encoded tools of a request; nil if there are none. The tools of a
// sampling request are new each time. They are not cached, because they would displace
// the toolsets of conversations.
func (m *Model) encode(ctx context.Context, request *converse.Request) *encodedTools {
	set := request.Tools
	if set == nil {
		set = &converse.Toolset{}
	}
	if len(set.Definitions) == 0 && len(m.hosted) == 0 {
		return nil
	}
	encoded := &encodedTools{set: set}
	if request.Purpose == converse.PurposeSampling {
		encoded.text = m.appendTools(ctx, nil, set, nil) // a server's request uses no tools of the model's server
	} else {
		encoded = m.tools.of(ctx, m, set)
	}
	if len(encoded.text) == 0 {
		return nil
	}
	return encoded
}

// of returns the encoded form of a toolset. Toolsets with equal definitions share an
// entry.
func (c *toolCache) of(ctx context.Context, m *Model, set *converse.Toolset) *encodedTools {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.entries, func(e *encodedTools) bool {
		return e.set == set || slices.Equal(e.set.Definitions, set.Definitions)
	})
	if i < 0 {
		if len(c.entries) == maxToolCache {
			c.entries = slices.Delete(c.entries, 0, 1)
		}
		c.entries = append(c.entries, &encodedTools{set: set, text: m.appendTools(ctx, nil, set, m.hosted)})
		i = len(c.entries) - 1
	}
	return c.entries[i]
}

// appendTools appends the tools member for a set. A tool that Screen rejects but that is
// offered anyway is left out and logged, because a request with it would fail as a whole.
func (m *Model) appendTools(ctx context.Context, dst []byte, set *converse.Toolset, hosted [][]byte) []byte {
	dst = append(dst, `,"tools":[`...)
	empty := len(dst)
	for _, tool := range hosted {
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = append(dst, tool...)
	}
	for _, definition := range set.Definitions {
		longer := dst
		if len(dst) > empty {
			longer = append(longer, ',')
		}
		longer, err := m.appendTool(longer, definition)
		if err != nil {
			event.Log(ctx, m.log, zapcore.WarnLevel, "a tool is set aside", event.ToolRefused, zap.String("tool", definition.Name), zap.Error(err))
			continue
		}
		dst = longer
	}
	if len(dst) == empty {
		return nil
	}
	return append(dst, ']')
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
		return append(strconv.AppendBool(jsontext.AppendName(dst, "strict"), toolschema.IsStrict(parameters)), '}'), nil
	}
	return append(dst, "}}"...), nil
}
