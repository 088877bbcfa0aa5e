// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// responsesRequest is the JSON form of a request to Responses. All members are read,
// because OpenAI refuses unknown ones.
type responsesRequest struct {
	Model             string          `json:"model"`
	Input             json.RawMessage `json:"input"`
	Instructions      *string         `json:"instructions"`
	Include           []string        `json:"include"`
	Store             *bool           `json:"store"`
	Stream            bool            `json:"stream"`
	Tools             []responsesTool `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	MaxToolCalls      *int            `json:"max_tool_calls"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	TopLogprobs       *int            `json:"top_logprobs"`
	PromptCacheKey    *string         `json:"prompt_cache_key"`
	ServiceTier       *string         `json:"service_tier"`
	SafetyIdentifier  *string         `json:"safety_identifier"`
	Truncation        *string         `json:"truncation"`
	Metadata          json.RawMessage `json:"metadata"`
	StreamOptions     json.RawMessage `json:"stream_options"`
	Reasoning         *struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	} `json:"reasoning"`
	Text *struct {
		Verbosity *string `json:"verbosity"`
		Format    *struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"schema"`
			Strict      *bool           `json:"strict"`
		} `json:"format"`
	} `json:"text"`
}

// responsesTool is a function, or a tool that the server runs.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	members     map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts unknown members: which ones a tool
// may have depends on its type.
func (t *responsesTool) UnmarshalJSON(data []byte) error {
	type plain responsesTool
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	return json.Unmarshal(data, &t.members)
}

// inputItem is one item of an input.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted *string         `json:"encrypted_content"`
	members   map[string]json.RawMessage
}

// isModels reports whether the model produced the item.
func (i *inputItem) isModels() bool {
	return i.Type != "function_call_output" && (i.Type != "message" || i.Role == "assistant")
}

// parseResponses parses and checks a request to Responses. The failure is the answer to
// the client.
func parseResponses(body []byte, header http.Header) (*Request, *Failure) {
	var wire responsesRequest
	if failure := decodeStrictly(body, &wire); failure != nil {
		return nil, failure
	}
	items, failure := readInput(wire.Input)
	if failure != nil {
		return nil, failure
	}
	if failure := validateResponses(&wire, items); failure != nil {
		return nil, failure
	}
	r := &Request{
		Model: wire.Model, Stream: wire.Stream, Header: header, Body: body,
		api: responsesAPI, encrypt: slices.Contains(wire.Include, "reasoning.encrypted_content"),
	}
	r.addItems(items)
	for _, t := range wire.Tools {
		if t.Type == "function" {
			r.Tools = append(r.Tools, Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return r, nil
}

// decodeStrictly decodes a request in which unknown members are errors.
func decodeStrictly(body []byte, into *responsesRequest) *Failure {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalid(wrong.Field, "invalid_type", "Invalid type for '%s': got %s instead.", wrong.Field, wrong.Value)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return invalid(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
	}
	return invalid("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON payload.)")
}

// readInput reads the items of an input, which is a text or a list, and the names of their
// members.
func readInput(raw json.RawMessage) ([]inputItem, *Failure) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		content, _ := json.Marshal(text)
		return []inputItem{{Type: "message", Role: "user", Content: content}}, nil
	}
	var items []inputItem
	if absent(raw) || json.Unmarshal(raw, &items) != nil {
		return nil, invalid("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	var all []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &all) // they are objects, as read before
	for i := range items {
		if items[i].Type == "" && items[i].Role != "" {
			items[i].Type = "message"
		}
		items[i].members = all[i]
	}
	return items, nil
}

// addItems converts items to messages. What the model produced in one answer is one
// message of the assistant.
func (r *Request) addItems(items []inputItem) {
	open, spoke := false, false // within an answer; it has a message
	for i := range items {
		item := &items[i]
		if !item.isModels() {
			open = false
			m := RequestMessage{Role: item.Role, Content: item.Content, Text: textOf(item.Content)}
			if item.Type == "function_call_output" {
				m = RequestMessage{Role: "tool", Content: item.Output, Text: textOf(item.Output), ToolCallID: item.CallID}
			}
			r.Messages = append(r.Messages, m)
			continue
		}
		if !open || item.Type == "message" && spoke || item.Type == "reasoning" && i > 0 && items[i-1].Type != "reasoning" {
			r.Messages = append(r.Messages, RequestMessage{Role: "assistant"})
			r.Position++
			open, spoke = true, false
		}
		m := &r.Messages[len(r.Messages)-1]
		switch item.Type {
		case "message":
			spoke = true
			m.Content, m.Text = item.Content, textOf(item.Content)
		case "function_call":
			m.Calls = append(m.Calls, Call{ID: item.CallID, Name: item.Name, Arguments: *item.Arguments})
		}
	}
}

// textOf returns the text of a content: a string, or the text parts of a list, joined by
// newlines.
func textOf(raw json.RawMessage) string {
	text, parts, _ := readContent(raw)
	for i, p := range parts {
		if p.Text == nil {
			continue
		}
		if i > 0 {
			text += "\n"
		}
		text += *p.Text
	}
	return text
}
