// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// messagesRequest is the JSON form of a request to Anthropic's Messages. All members are
// read, because Anthropic refuses unknown ones.
type messagesRequest struct {
	Model         string           `json:"model"`
	MaxTokens     *int             `json:"max_tokens"`
	Messages      []claudeMessage  `json:"messages"`
	System        json.RawMessage  `json:"system"`
	Tools         []claudeTool     `json:"tools"`
	ToolChoice    *claudeChoice    `json:"tool_choice"`
	Stream        bool             `json:"stream"`
	Temperature   *float64         `json:"temperature"`
	TopP          *float64         `json:"top_p"`
	TopK          *int             `json:"top_k"`
	StopSequences []string         `json:"stop_sequences"`
	Thinking      *claudeThinking  `json:"thinking"`
	OutputConfig  *json.RawMessage `json:"output_config"`
	CacheControl  *json.RawMessage `json:"cache_control"`
	Metadata      *json.RawMessage `json:"metadata"`
	ServiceTier   *string          `json:"service_tier"`
	Container     *json.RawMessage `json:"container"`
	MCPServers    []claudeServer   `json:"mcp_servers"`
}

// claudeServer is an MCP server whose tools Anthropic calls by itself.
type claudeServer struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Name  string `json:"name"`
	Token string `json:"authorization_token"`
}

type claudeMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// claudeTool is a tool of the client, or one that the server runs, which has other members.
type claudeTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Server      string          `json:"mcp_server_name"` // of a toolset
	members     map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts unknown members: which ones a tool
// may have depends on its type.
func (t *claudeTool) UnmarshalJSON(data []byte) error {
	type plain claudeTool
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	return json.Unmarshal(data, &t.members)
}

// isClients reports whether the client runs the tool.
func (t *claudeTool) isClients() bool { return t.Type == "" || t.Type == "custom" }

type claudeChoice struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Disable *bool  `json:"disable_parallel_tool_use"`
}

type claudeThinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens"`
	Display string `json:"display"`
}

// claudeBlock is one block of a content.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
		FileID    string `json:"file_id"`
	} `json:"source"`
}

// parseMessages parses and checks a request to Messages. The failure is the answer to the
// client.
func parseMessages(body []byte, header http.Header) (*Request, *Failure) {
	var wire messagesRequest
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&wire)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		return nil, claudeInvalid("%s: Input should be a valid %s", wrong.Field, wrong.Type)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return nil, claudeInvalid("%s: Extra inputs are not permitted", strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`))
	default:
		return nil, claudeInvalid("The request body is not valid JSON: %v", err)
	}
	if header.Get("Anthropic-Version") == "" {
		return nil, claudeInvalid("anthropic-version: header is required")
	}
	contents, failure := wire.contents()
	if failure != nil {
		return nil, failure
	}
	if failure := wire.validate(contents); failure != nil {
		return nil, failure
	}
	r := &Request{Model: wire.Model, Stream: wire.Stream, Header: header, Body: body, api: messagesAPI}
	r.thinks = wire.Thinking != nil && wire.Thinking.Type != "disabled"
	r.addMessages(wire.Messages, contents)
	for _, t := range wire.Tools {
		if t.isClients() {
			r.Tools = append(r.Tools, Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
		}
	}
	return r, nil
}

// claudeInvalid returns the refusal of a request in the form of Anthropic.
func claudeInvalid(format string, args ...any) *Failure {
	f := invalid("", "", format, args...)
	f.anthropic = true
	return f
}

// contents returns the blocks of each message.
func (w *messagesRequest) contents() ([][]claudeBlock, *Failure) {
	all := make([][]claudeBlock, len(w.Messages))
	for i, m := range w.Messages {
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			all[i] = []claudeBlock{{Type: "text", Text: &text}}
			continue
		}
		if absent(m.Content) || json.Unmarshal(m.Content, &all[i]) != nil {
			return nil, claudeInvalid("messages.%d.content: Input should be a valid list", i)
		}
	}
	return all, nil
}

// addMessages converts messages. The results of a user message become messages of tools.
func (r *Request) addMessages(messages []claudeMessage, contents [][]claudeBlock) {
	for i, m := range messages {
		out, speaks := RequestMessage{Role: m.Role, Content: m.Content}, m.Role == "assistant"
		for _, b := range contents[i] {
			speaks = speaks || b.Type != "tool_result"
			switch b.Type {
			case "text":
				if out.Text != "" {
					out.Text += "\n"
				}
				out.Text += *b.Text
			case "tool_use":
				out.Calls = append(out.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				r.Messages = append(r.Messages, RequestMessage{Role: "tool", ToolCallID: b.ToolUseID, Content: b.Content, Text: textOf(b.Content)})
			}
		}
		if m.Role == "assistant" {
			r.Position++
		}
		if speaks {
			r.Messages = append(r.Messages, out)
		}
	}
}
