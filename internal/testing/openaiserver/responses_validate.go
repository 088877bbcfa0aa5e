// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// This file has the rules of Responses about a request as a whole. Their sources are the API
// reference (https://platform.openai.com/docs/api-reference/responses/create, looked up on
// 2026-11-22) or the report that a comment names, which quotes the message of OpenAI.

// validateResponses refuses requests that OpenAI would refuse.
func validateResponses(w *responsesRequest, items []inputItem) *Failure {
	if w.Model == "" {
		return invalid("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	}
	if len(items) == 0 {
		return invalid("input", "empty_array", "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i := range items {
		if failure := validateItem(i, &items[i]); failure != nil {
			return failure
		}
	}
	for _, check := range []func() *Failure{
		func() *Failure { return validateIDs(items) },
		func() *Failure { return validateCallOutputs(items) },
		func() *Failure { return validateReasoning(w, items) },
		w.validateTools, w.validateToolChoice, w.validateFormat, w.validateSettings,
	} {
		if failure := check(); failure != nil {
			return failure
		}
	}
	return nil
}

// validateTools checks the names and schemas of the tools. A function is strict unless it
// says otherwise.
func (w *responsesRequest) validateTools() *Failure {
	seen := map[string]bool{}
	if n := len(w.Tools); n > maxTools {
		return invalid("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxTools, n)
	}
	for i, t := range w.Tools {
		where := at("tools[%d]", i)
		switch {
		case t.Type != "function":
			if !slices.Contains([]string{"web_search", "file_search", "code_interpreter", "image_generation", "mcp"}, t.Type) {
				return invalid(where+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function', 'web_search', 'file_search', 'code_interpreter', 'image_generation', and 'mcp'.", t.Type)
			}
			continue
		case !legalName.MatchString(t.Name):
			return badName(where+".name", t.Name)
		case seen[t.Name]:
			return invalid("tools", "", "Tool names must be unique: '%s' is there twice.", t.Name)
		}
		seen[t.Name] = true
		if name := unknownMember(t.members, responsesToolMembers); name != "" {
			return invalid(where+"."+name, "unknown_parameter", "Unknown parameter: '%s.%s'.", where, name)
		}
		if reason := checkParameters(t.Parameters, t.Strict == nil || *t.Strict); reason != "" {
			return invalid(where+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", t.Name, reason)
		}
		if place := findLookaround(t.Parameters); place != "" {
			return invalid("tools", "invalid_json_schema", "Invalid JSON schema: regex lookaround is not supported. Found at %s.", place)
		}
	}
	return nil
}

// responsesToolMembers are the members of a function.
var responsesToolMembers = strings.Fields("type name description parameters strict output_schema defer_loading allowed_callers")

// validateToolChoice checks the members that require tools.
func (w *responsesRequest) validateToolChoice() *Failure {
	if absent(w.ToolChoice) {
		return nil
	}
	var mode string
	if json.Unmarshal(w.ToolChoice, &mode) == nil {
		if mode != "none" && mode != "auto" && mode != "required" {
			return invalid("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", mode)
		}
		if mode == "required" && len(w.Tools) == 0 {
			return invalid("tool_choice", "", "Tool choice 'required' must be specified with 'tools' parameter.")
		}
		return nil
	}
	var named struct{ Type, Name string }
	if json.Unmarshal(w.ToolChoice, &named) != nil || named.Type == "" {
		return invalid("tool_choice", "invalid_type", "Invalid type for 'tool_choice': expected a string or an object.")
	}
	if named.Type == "function" && !slices.ContainsFunc(w.Tools, func(t responsesTool) bool { return t.Name == named.Name }) {
		return invalid("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", named.Name)
	}
	return nil
}

// validateFormat checks the form of the answer.
func (w *responsesRequest) validateFormat() *Failure {
	if w.Text == nil || w.Text.Format == nil {
		return nil
	}
	f := w.Text.Format
	switch f.Type {
	case "text", "json_object":
		return nil
	case "json_schema":
	default:
		return invalid("text.format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	}
	switch {
	case !legalName.MatchString(f.Name):
		return badName("text.format.name", f.Name)
	case absent(f.Schema):
		return invalid("text.format.schema", "missing_required_parameter", "Missing required parameter: 'text.format.schema'.")
	}
	if reason := checkParameters(f.Schema, f.Strict != nil && *f.Strict); reason != "" {
		return invalid("text.format.schema", "invalid_json_schema", "Invalid schema for response_format '%s': %s", f.Name, reason)
	}
	if place := findLookaround(f.Schema); place != "" {
		return invalid("text.format.schema", "invalid_json_schema", "Invalid JSON schema: regex lookaround is not supported. Found at %s.", place)
	}
	return nil
}

// reasoningModels are the names of models that reason by default.
var reasoningModels = regexp.MustCompile(`^(o[0-9]|gpt-5)`)

// reasons reports whether the model reasons in the answer.
func (w *responsesRequest) reasons() bool {
	off := w.Reasoning != nil && w.Reasoning.Effort != nil && *w.Reasoning.Effort == "none"
	return reasoningModels.MatchString(w.Model) && !off
}

// validateSettings checks the other members.
func (w *responsesRequest) validateSettings() *Failure {
	switch {
	case w.Temperature != nil && w.reasons(): // github.com/OpenHands/software-agent-sdk/issues/1837
		return invalid("temperature", "unsupported_parameter", "Unsupported parameter: 'temperature' is not supported with this model.")
	case w.TopP != nil && w.reasons():
		return invalid("top_p", "unsupported_parameter", "Unsupported parameter: 'top_p' is not supported with this model.")
	case w.MaxOutputTokens != nil && *w.MaxOutputTokens < 16:
		return invalid("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *w.MaxOutputTokens)
	case w.Temperature != nil && (*w.Temperature < 0 || *w.Temperature > 2):
		return invalid("temperature", "decimal_out_of_range", "Invalid 'temperature': expected a value between 0 and 2, but got %v instead.", *w.Temperature)
	case w.TopP != nil && (*w.TopP < 0 || *w.TopP > 1):
		return invalid("top_p", "decimal_out_of_range", "Invalid 'top_p': expected a value between 0 and 1, but got %v instead.", *w.TopP)
	case w.Reasoning != nil && w.Reasoning.Effort != nil && !slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh"}, *w.Reasoning.Effort):
		return invalid("reasoning.effort", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'.", *w.Reasoning.Effort)
	case w.Reasoning != nil && w.Reasoning.Summary != nil && !slices.Contains([]string{"auto", "concise", "detailed"}, *w.Reasoning.Summary):
		return invalid("reasoning.summary", "invalid_value", "Invalid value: '%s'. Supported values are: 'auto', 'concise', and 'detailed'.", *w.Reasoning.Summary)
	case w.PromptCacheKey != nil && len(*w.PromptCacheKey) > 64:
		return invalid("prompt_cache_key", "string_above_max_length", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", len(*w.PromptCacheKey))
	}
	known := []string{"reasoning.encrypted_content", "web_search_call.action.sources", "code_interpreter_call.outputs", "file_search_call.results", "message.input_image.image_url", "message.output_text.logprobs"}
	for i, include := range w.Include {
		if !slices.Contains(known, include) {
			return invalid(at("include[%d]", i), "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", include, strings.Join(known, "', '"))
		}
	}
	return nil
}
