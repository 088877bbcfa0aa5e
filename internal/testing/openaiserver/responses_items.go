// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// This file has the rules of Responses about the items of an input. Their sources are the API
// reference (https://platform.openai.com/docs/api-reference/responses/create, looked up on
// 2026-11-22) or the report that a comment names, which quotes the message of OpenAI.

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

// itemMembers are the members of the items that the client writes.
var itemMembers = map[string][]string{
	"message":              strings.Fields("type id role content status phase"),
	"function_call":        strings.Fields("type id call_id name arguments status namespace"),
	"function_call_output": strings.Fields("type id call_id output status"),
	"reasoning":            strings.Fields("type id summary content encrypted_content"), // github.com/earendil-works/pi/issues/8208
}

// validateItem checks one item by itself.
func validateItem(i int, item *inputItem) *Failure {
	where := at("input[%d]", i)
	if known := itemMembers[item.Type]; known != nil {
		if name := unknownMember(item.members, known); name != "" {
			return invalid(where+"."+name, "unknown_parameter", "Unknown parameter: '%s.%s'.", where, name)
		}
	}
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
		case len(item.CallID) > maxID:
			return tooLong(where+".call_id", maxID, len(item.CallID))
		case !legalName.MatchString(item.Name):
			return badName(where+".name", item.Name)
		case item.Arguments == nil:
			return missing("arguments")
		}
	case item.Type == "function_call_output":
		if item.CallID == "" {
			return missing("call_id")
		}
		if len(item.CallID) > maxID {
			return tooLong(where+".call_id", maxID, len(item.CallID))
		}
		return validateParts(where+".output", item.Output, inputParts["user"])
	case item.Type == "reasoning":
		var content []json.RawMessage
		switch {
		case absent(item.Summary):
			return missing("summary")
		case json.Unmarshal(item.Content, &content) == nil && len(content) > 0: // github.com/musistudio/claude-code-router/issues/1783
			return invalid(where+".content", "array_above_max_length",
				"Invalid '%s.content': array too long. Expected an array with maximum length 0, but got an array with length %d instead.", where, len(content))
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
		Filename string  `json:"filename"`
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
		case p.Type == "input_image" && p.FileID == "":
			if failure := validateImageURL(at+".image_url", p.ImageURL); failure != nil {
				return failure
			}
		case p.Type == "input_file" && p.FileData != "" && (p.Filename == "" || !strings.HasPrefix(p.FileData, "data:")):
			return invalid(at+".file_data", "invalid_value", "Invalid '%s.file_data'. Expected a base64-encoded data URL with a MIME type, such as 'data:application/pdf;base64,…', and a filename.", at)
		case p.Type == "input_file" && p.FileData == "" && p.FileID == "" && p.FileURL == "",
			strings.HasSuffix(p.Type, "_text") && p.Text == nil, p.Type == "refusal" && p.Refusal == nil:
			return invalid(at, "missing_required_parameter", "Missing required parameter: '%s.%s'.", at, p.Type)
		}
	}
	return nil
}

// validateImageURL checks the address of an image. The data of a data URL must be an image of
// a type that OpenAI takes (Images and vision, Image input requirements).
func validateImageURL(where, address string) *Failure {
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return nil
	}
	_, text, ok := strings.Cut(address, ";base64,")
	if len(address) < 11 || !strings.EqualFold(address[:11], "data:image/") || !ok {
		return invalid(where, "invalid_value", "Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", where)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !slices.Contains(imageTypes, http.DetectContentType(data)) {
		return invalid(where, "invalid_value", "The image data you provided does not represent a valid image. "+
			"Please check your input and try again with one of the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].")
	}
	return nil
}

// maxID is the longest ID of an item or of a call
// (github.com/AnswerDotAI/fastllm/issues/45, github.com/can1357/oh-my-pi/issues/284).
const maxID = 64

func tooLong(where string, limit, got int) *Failure {
	return invalid(where, "string_above_max_length",
		"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", where, limit, got)
}

// idPrefixes are the beginnings of the IDs of items (github.com/openai/codex/issues/33176).
var idPrefixes = map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}

// validateIDs checks the IDs of items
// (github.com/OpenRouterTeam/ai-sdk-provider/issues/254).
func validateIDs(items []inputItem) *Failure {
	seen := map[string]bool{}
	for i, item := range items {
		where := at("input[%d].id", i)
		switch prefix := idPrefixes[item.Type]; {
		case item.ID == "":
			continue
		case len(item.ID) > maxID:
			return tooLong(where, maxID, len(item.ID))
		case !strings.HasPrefix(item.ID, prefix):
			return invalid(where, "invalid_id_prefix", "Invalid '%s': '%s'. Expected an ID that begins with '%s'.", where, item.ID, prefix)
		case seen[item.ID]:
			return invalid("input", "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", item.ID)
		}
		seen[item.ID] = true
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
