// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// The messages follow those of the OpenAI API, so that a client that parses them sees
// realistic ones.

var legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// claudeToolName and legalID are the names of tools and the IDs of calls that Anthropic
// accepts.
var (
	claudeToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	legalID        = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// maxTools is how many tools OpenAI accepts in one request.
const maxTools = 128

// validate refuses requests that OpenAI would refuse. It ignores unknown members, because
// other servers accept some.
func validate(w *wireRequest) *Failure {
	if w.Model == "" {
		return invalid("model", "", "you must provide a model parameter")
	}
	for _, check := range []func(*wireRequest) *Failure{
		validateMessages, validateSequence, validateTools, validateToolChoice, validateFormat, validateSampling,
	} {
		if failure := check(w); failure != nil {
			return failure
		}
	}
	return nil
}

// validateMessages checks each message by itself.
func validateMessages(w *wireRequest) *Failure {
	if w.Messages == nil {
		return invalid("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	if len(w.Messages) == 0 {
		return invalid("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i := range w.Messages {
		if failure := validateMessage(i, &w.Messages[i]); failure != nil {
			return failure
		}
	}
	return nil
}

// partKinds are the content parts that each role may hold.
var partKinds = map[string][]string{
	"developer": {"text"},
	"system":    {"text"},
	"user":      {"text", "image_url", "input_audio", "file"},
	"assistant": {"text", "refusal"},
	"tool":      {"text"},
}

func validateMessage(i int, m *wireMessage) *Failure {
	kinds, known := partKinds[m.Role]
	switch {
	case !known:
		return invalid(at("messages[%d].role", i), "invalid_value",
			"Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role)
	case m.Role == "tool" && m.ToolCallID == "":
		return invalid(at("messages[%d].tool_call_id", i), "missing_required_parameter",
			"Missing required parameter: 'messages[%d].tool_call_id'.", i)
	case m.Role != "assistant" && m.ToolCalls != nil:
		return invalid(at("messages[%d].tool_calls", i), "", "Only messages of role 'assistant' can have 'tool_calls', got '%s'.", m.Role)
	case m.Role != "tool" && m.ToolCallID != "":
		return invalid(at("messages[%d].tool_call_id", i), "", "Only messages of role 'tool' can have 'tool_call_id', got '%s'.", m.Role)
	}
	if absent(m.Content) {
		if m.Role == "assistant" && (len(m.ToolCalls) > 0 || m.Refusal != nil) {
			return validateCalls(i, m.ToolCalls)
		}
		return invalid(at("messages[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
	if failure := validateContent(i, m.Content, kinds); failure != nil {
		return failure
	}
	return validateCalls(i, m.ToolCalls)
}

func validateContent(i int, raw json.RawMessage, kinds []string) *Failure {
	_, parts, ok := readContent(raw)
	switch {
	case !ok:
		return invalid(at("messages[%d].content", i), "invalid_type",
			"Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i)
	case parts != nil && len(parts) == 0:
		return invalid(at("messages[%d].content", i), "empty_array",
			"Invalid 'messages[%d].content': empty array. Expected an array with minimum length 1, but got an empty array instead.", i)
	}
	for k, p := range parts {
		if !slices.Contains(kinds, p.Type) {
			return invalid(at("messages[%d].content[%d].type", i, k), "invalid_value",
				"Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(kinds, "', '"))
		}
		payload := map[string]bool{
			"text":        p.Text != nil,
			"refusal":     p.Refusal != nil,
			"image_url":   hasMember(p.ImageURL, "url"),
			"input_audio": hasMember(p.InputAudio, "data"),
			"file":        !absent(p.File),
		}
		if !payload[p.Type] {
			return invalid(at("messages[%d].content[%d].%s", i, k, p.Type), "missing_required_parameter",
				"Missing required parameter: 'messages[%d].content[%d].%s'.", i, k, p.Type)
		}
	}
	return nil
}

// hasMember reports whether raw is an object with a non-empty string under name.
func hasMember(raw json.RawMessage, name string) bool {
	var object map[string]json.RawMessage
	var text string
	return json.Unmarshal(raw, &object) == nil && json.Unmarshal(object[name], &text) == nil && text != ""
}

// validateCalls checks the tool calls of one assistant message.
func validateCalls(i int, calls []wireCall) *Failure {
	if calls != nil && len(calls) == 0 {
		return invalid(at("messages[%d].tool_calls", i), "empty_array",
			"Invalid 'messages[%d].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", i)
	}
	seen := make(map[string]bool, len(calls))
	for k, c := range calls {
		where := at("messages[%d].tool_calls[%d]", i, k)
		switch {
		case c.ID == "":
			return invalid(where+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", where)
		case seen[c.ID]:
			return invalid(where+".id", "", "Duplicate value for 'tool_call_id' of '%s' in message[%d]", c.ID, i)
		case c.Type != "function":
			return invalid(where+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", c.Type)
		case !legalName.MatchString(c.Function.Name):
			return badName(where+".function.name", c.Function.Name)
		case c.Function.Arguments == nil:
			return invalid(where+".function.arguments", "missing_required_parameter", "Missing required parameter: '%s.function.arguments'.", where)
		}
		seen[c.ID] = true
	}
	return nil
}

// validateSequence checks that every tool call is answered by exactly one tool message
// before any other message.
func validateSequence(w *wireRequest) *Failure {
	open := map[string]bool{} // IDs of the last assistant message; true once answered
	for i, m := range w.Messages {
		if m.Role != "tool" {
			if failure := unanswered(open); failure != nil {
				return failure
			}
			clear(open)
			for _, c := range m.ToolCalls {
				open[c.ID] = false
			}
			continue
		}
		answered, asked := open[m.ToolCallID]
		switch {
		case len(open) == 0:
			return invalid(at("messages.[%d].role", i), "",
				"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		case !asked:
			return invalid(at("messages.[%d].tool_call_id", i), "",
				"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", m.ToolCallID)
		case answered:
			return invalid(at("messages.[%d].tool_call_id", i), "", "Duplicate value for 'tool_call_id' of '%s' in message[%d]", m.ToolCallID, i)
		}
		open[m.ToolCallID] = true
	}
	return unanswered(open)
}

// unanswered returns a failure if one of the calls has no answer.
func unanswered(open map[string]bool) *Failure {
	var missing []string
	for id, answered := range open {
		if !answered {
			missing = append(missing, id)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return invalid("messages", "",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
		strings.Join(missing, ", "))
}

// validateTools checks the names and schemas of the tools.
func validateTools(w *wireRequest) *Failure {
	switch n := len(w.Tools); {
	case w.Tools != nil && n == 0:
		return invalid("tools", "empty_array", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case n > maxTools:
		return invalid("tools", "array_above_max_length",
			"Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", maxTools, n)
	}
	seen := make(map[string]bool, len(w.Tools))
	for i, t := range w.Tools {
		where := at("tools[%d]", i)
		switch {
		case t.Type != "function":
			return invalid(where+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		case t.Function == nil:
			return invalid(where+".function", "missing_required_parameter", "Missing required parameter: '%s.function'.", where)
		case !legalName.MatchString(t.Function.Name):
			return badName(where+".function.name", t.Function.Name)
		case seen[t.Function.Name]:
			return invalid("tools", "", "Tool names must be unique: '%s' is there twice.", t.Function.Name)
		}
		seen[t.Function.Name] = true
		strict := t.Function.Strict != nil && *t.Function.Strict
		if reason := checkParameters(t.Function.Parameters, strict); reason != "" {
			return invalid(where+".function.parameters", "invalid_function_parameters",
				"Invalid schema for function '%s': %s", t.Function.Name, reason)
		}
	}
	return nil
}

// validateToolChoice checks the members that require tools.
func validateToolChoice(w *wireRequest) *Failure {
	if w.ParallelToolCalls != nil && w.Tools == nil {
		return invalid("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	if absent(w.ToolChoice) {
		return nil
	}
	if w.Tools == nil {
		return invalid("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	var mode string
	if json.Unmarshal(w.ToolChoice, &mode) == nil {
		if slices.Contains([]string{"none", "auto", "required"}, mode) {
			return nil
		}
		return invalid("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", mode)
	}
	var named wireTool
	if json.Unmarshal(w.ToolChoice, &named) != nil || named.Type != "function" || named.Function == nil {
		return invalid("tool_choice", "invalid_type", "Invalid type for 'tool_choice': expected a string or {\"type\":\"function\",\"function\":{\"name\":…}}.")
	}
	if !slices.ContainsFunc(w.Tools, func(t wireTool) bool { return t.Function.Name == named.Function.Name }) {
		return invalid("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", named.Function.Name)
	}
	return nil
}

// validateFormat checks the response format.
func validateFormat(w *wireRequest) *Failure {
	f := w.ResponseFormat
	if f == nil {
		return nil
	}
	switch f.Type {
	case "text":
		return nil
	case "json_object":
		if !slices.ContainsFunc(w.Messages, func(m wireMessage) bool { return bytes.Contains(bytes.ToLower(m.Content), []byte("json")) }) {
			return invalid("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		return nil
	case "json_schema":
	default:
		return invalid("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'json_object', 'json_schema', and 'text'.", f.Type)
	}
	switch {
	case f.JSONSchema == nil:
		return invalid("response_format.json_schema", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema'.")
	case !legalName.MatchString(f.JSONSchema.Name):
		return badName("response_format.json_schema.name", f.JSONSchema.Name)
	case absent(f.JSONSchema.Schema):
		return invalid("response_format.json_schema.schema", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema.schema'.")
	}
	strict := f.JSONSchema.Strict != nil && *f.JSONSchema.Strict
	if reason := checkParameters(f.JSONSchema.Schema, strict); reason != "" {
		return invalid("response_format", "", "Invalid schema for response_format '%s': %s", f.JSONSchema.Name, reason)
	}
	return nil
}

// validateSampling checks the sampling parameters and other small options.
func validateSampling(w *wireRequest) *Failure {
	switch {
	case w.StreamOptions != nil && !w.Stream:
		return invalid("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case w.N != nil && *w.N != 1:
		return invalid("n", "", "This server gives one choice; leave 'n' out.")
	case w.Temperature != nil && (*w.Temperature < 0 || *w.Temperature > 2):
		return invalid("temperature", "decimal_out_of_range", "Invalid 'temperature': expected a value between 0 and 2, but got %v instead.", *w.Temperature)
	case w.TopP != nil && (*w.TopP < 0 || *w.TopP > 1):
		return invalid("top_p", "decimal_out_of_range", "Invalid 'top_p': expected a value between 0 and 1, but got %v instead.", *w.TopP)
	case w.MaxTokens != nil && w.MaxCompletionTokens != nil:
		return invalid("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case w.MaxTokens != nil && *w.MaxTokens < 1:
		return tooSmall("max_tokens", *w.MaxTokens)
	case w.MaxCompletionTokens != nil && *w.MaxCompletionTokens < 1:
		return tooSmall("max_completion_tokens", *w.MaxCompletionTokens)
	case w.ReasoningEffort != nil && !slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh"}, *w.ReasoningEffort):
		return invalid("reasoning_effort", "invalid_value",
			"Invalid value: '%s'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'.", *w.ReasoningEffort)
	case !validStop(w.Stop):
		return invalid("stop", "invalid_type", "Invalid 'stop': expected a string or an array of one to four strings.")
	}
	return nil
}

func validStop(raw json.RawMessage) bool {
	var one string
	var many []string
	if absent(raw) || json.Unmarshal(raw, &one) == nil {
		return true
	}
	return json.Unmarshal(raw, &many) == nil && len(many) >= 1 && len(many) <= 4
}

func badName(where, name string) *Failure {
	return invalid(where, "invalid_value",
		"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' with 1 to 64 characters, got '%s'.", where, name)
}

func tooSmall(param string, got int) *Failure {
	return invalid(param, "integer_below_min_value",
		"Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", param, got)
}
