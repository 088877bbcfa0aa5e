// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

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

// hostedItems are the items of tools that the server runs.
var hostedItems = []string{
	"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools", "mcp_approval_request",
}

// inputParts are the parts that a message of each role may hold.
var inputParts = map[string][]string{
	"developer": {"input_text", "input_image", "input_file"},
	"system":    {"input_text", "input_image", "input_file"},
	"user":      {"input_text", "input_image", "input_file"},
	"assistant": {"output_text", "refusal"},
}

// validateItem checks one item by itself.
func validateItem(i int, item *inputItem) *Failure {
	where := at("input[%d]", i)
	missing := func(name string) *Failure {
		return invalid(where+"."+name, "missing_required_parameter", "Missing required parameter: '%s.%s'.", where, name)
	}
	switch {
	case item.Type == "message":
		kinds, known := inputParts[item.Role]
		if !known {
			return invalid(where+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", item.Role)
		}
		return validateParts(where+".content", item.Content, kinds)
	case item.Type == "function_call":
		switch {
		case item.CallID == "":
			return missing("call_id")
		case !legalName.MatchString(item.Name):
			return badName(where+".name", item.Name)
		case item.Arguments == nil:
			return missing("arguments")
		}
	case item.Type == "function_call_output":
		if item.CallID == "" {
			return missing("call_id")
		}
		return validateParts(where+".output", item.Output, inputParts["user"])
	case item.Type == "reasoning":
		if absent(item.Summary) {
			return missing("summary")
		}
	case !slices.Contains(hostedItems, item.Type):
		return invalid(where+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'message', 'reasoning', 'function_call', and 'function_call_output'.", item.Type)
	}
	return nil
}

// validateParts checks a content that is a text or a list of parts.
func validateParts(where string, raw json.RawMessage, kinds []string) *Failure {
	if absent(raw) {
		return invalid(where, "missing_required_parameter", "Missing required parameter: '%s'.", where)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Refusal  *string `json:"refusal"`
		ImageURL string  `json:"image_url"`
		FileData string  `json:"file_data"`
		FileID   string  `json:"file_id"`
		FileURL  string  `json:"file_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return invalid(where, "invalid_type", "Invalid type for '%s': expected one of a string or array of objects.", where)
	}
	if len(parts) == 0 {
		return invalid(where, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", where)
	}
	for k, p := range parts {
		at := at("%s[%d]", where, k)
		switch {
		case !slices.Contains(kinds, p.Type):
			return invalid(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(kinds, "', '"))
		case p.Type == "input_image" && !strings.HasPrefix(p.ImageURL, "data:image/") && !strings.HasPrefix(p.ImageURL, "http"):
			return invalid(at+".image_url", "invalid_value", "Invalid '%s.image_url'. Expected a valid URL, but got a value with an invalid format.", at)
		case p.Type == "input_file" && p.FileData == "" && p.FileID == "" && p.FileURL == "",
			strings.HasSuffix(p.Type, "_text") && p.Text == nil, p.Type == "refusal" && p.Refusal == nil:
			return invalid(at, "missing_required_parameter", "Missing required parameter: '%s.%s'.", at, p.Type)
		}
	}
	return nil
}

// validateCallOutputs checks that each call has one output, after it.
func validateCallOutputs(items []inputItem) *Failure {
	answered := map[string]bool{}
	var order []string
	for i, item := range items {
		switch item.Type {
		case "function_call":
			if _, twice := answered[item.CallID]; twice {
				return invalid(at("input[%d].call_id", i), "", "Duplicate function call with call_id %s.", item.CallID)
			}
			answered[item.CallID] = false
			order = append(order, item.CallID)
		case "function_call_output":
			done, known := answered[item.CallID]
			if !known {
				return invalid("input", "", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			if done {
				return invalid("input", "", "Duplicate function call output with call_id %s.", item.CallID)
			}
			answered[item.CallID] = true
		}
	}
	for _, id := range order {
		if !answered[id] {
			return invalid("input", "", "No tool output found for function call %s.", id)
		}
	}
	return nil
}

// seal returns the encrypted content of a reasoning. It holds what OpenAI checks: the model,
// and the item that followed.
func seal(model, next string) string {
	sum := sha256.Sum256([]byte(model + "\x00" + next))
	return base64.StdEncoding.EncodeToString([]byte("sealed:" + hex.EncodeToString(sum[:])))
}

// validateReasoning checks that each reasoning is one of this server and model, and stands
// before the item that it was made with.
func validateReasoning(w *responsesRequest, items []inputItem) *Failure {
	stored := w.Store == nil || *w.Store
	for i, item := range items {
		if item.Type != "reasoning" {
			continue
		}
		if item.Encrypted == nil || *item.Encrypted == "" {
			if stored {
				continue
			}
			return invalid("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", item.ID)
		}
		text, err := base64.StdEncoding.DecodeString(*item.Encrypted)
		if err != nil || !bytes.HasPrefix(text, []byte("sealed:")) {
			return unverified(item)
		}
		if i+1 == len(items) || !items[i+1].isModels() {
			return invalid("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", item.ID)
		}
		if items[i+1].Type != "reasoning" && *item.Encrypted != seal(w.Model, nextMark(&items[i+1])) {
			return unverified(item)
		}
	}
	return nil
}

func unverified(item inputItem) *Failure {
	return invalid("input", "invalid_encrypted_content", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", item.ID)
}

// nextMark returns what identifies the item after a reasoning: a call by its ID, a message
// by its beginning.
func nextMark(item *inputItem) string {
	if item.Type == "function_call" {
		return item.CallID
	}
	return "message"
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
		if reason := checkParameters(t.Parameters, t.Strict == nil || *t.Strict); reason != "" {
			return invalid(where+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", t.Name, reason)
		}
	}
	return nil
}

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
	return nil
}

// validateSettings checks the other members.
func (w *responsesRequest) validateSettings() *Failure {
	switch {
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
