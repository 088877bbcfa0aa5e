// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
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
}

type claudeMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type claudeTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

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
	} `json:"source"`
}

// parseMessages parses and checks a request to Messages. The failure is the answer to the
// client. With trust it checks only what it needs.
func parseMessages(body []byte, header http.Header, trust bool) (*Request, *Failure) {
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
	if !trust {
		if failure := wire.validate(contents); failure != nil {
			return nil, failure
		}
	}
	r := &Request{Model: wire.Model, Stream: wire.Stream, Header: header, Body: body, api: messagesAPI}
	r.thinks = wire.Thinking != nil && wire.Thinking.Type != "disabled"
	r.addMessages(wire.Messages, contents)
	for _, t := range wire.Tools {
		if t.Type == "" || t.Type == "custom" {
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
		out := RequestMessage{Role: m.Role, Content: m.Content}
		for _, b := range contents[i] {
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
		if m.Role == "assistant" || out.Text != "" {
			r.Messages = append(r.Messages, out)
		}
	}
}

// validate refuses requests that Anthropic would refuse.
func (w *messagesRequest) validate(contents [][]claudeBlock) *Failure {
	switch {
	case w.Model == "":
		return claudeInvalid("model: Field required")
	case w.MaxTokens == nil:
		return claudeInvalid("max_tokens: Field required")
	case *w.MaxTokens < 1:
		return claudeInvalid("max_tokens: Input should be greater than or equal to 1")
	case len(w.Messages) == 0:
		return claudeInvalid("messages: at least one message is required")
	case w.Temperature != nil && (*w.Temperature < 0 || *w.Temperature > 1):
		return claudeInvalid("temperature: range: 0..1")
	}
	for i, m := range w.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return claudeInvalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if len(contents[i]) == 0 {
			return claudeInvalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		for k := range contents[i] {
			if failure := w.validateBlock(i, k, m.Role, contents[i]); failure != nil {
				return failure
			}
		}
	}
	if w.Messages[0].Role != "user" {
		return claudeInvalid("messages: first message must use the \"user\" role")
	}
	if failure := validateToolUses(w.Messages, contents); failure != nil {
		return failure
	}
	if failure := w.validateClaudeTools(); failure != nil {
		return failure
	}
	return w.validateThinking()
}

// blockKinds are the blocks that each role may have.
var blockKinds = map[string][]string{
	"user": {"text", "image", "document", "tool_result", "search_result"},
	"assistant": {"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result",
		"code_execution_tool_result", "mcp_tool_use", "mcp_tool_result"},
}

// validateBlock checks one block.
func (w *messagesRequest) validateBlock(i, k int, role string, blocks []claudeBlock) *Failure {
	b := blocks[k]
	where := at("messages.%d.content.%d", i, k)
	switch {
	case !slices.Contains(blockKinds[role], b.Type):
		return claudeInvalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags for the role '%s'", where, b.Type, role)
	case b.Type == "text" && (b.Text == nil || *b.Text == ""):
		return claudeInvalid("%s.text: text content blocks must be non-empty", where)
	case b.Type == "text" && strings.TrimSpace(*b.Text) == "":
		return claudeInvalid("%s.text: text content blocks must contain non-whitespace text", where)
	case b.Type == "tool_use" && (!legalName.MatchString(b.Name) || b.ID == "" || !legalID.MatchString(b.ID)):
		return claudeInvalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", where)
	case b.Type == "tool_use" && !strings.HasPrefix(strings.TrimSpace(string(b.Input)), "{"):
		return claudeInvalid("%s.tool_use.input: Input should be a valid dictionary", where)
	case b.Type == "thinking" && b.Signature == "":
		return claudeInvalid("%s.thinking.signature: Field required", where)
	case b.Type == "thinking" && b.Signature != sign(w.Model, *b.Thinking), b.Type == "redacted_thinking" && b.Data == "":
		return claudeInvalid("%s: Invalid `signature` in `thinking` block", where)
	case (b.Type == "image" || b.Type == "document") && (b.Source == nil || b.Source.Data == "" && b.Source.URL == ""):
		return claudeInvalid("%s.%s.source: Field required", where, b.Type)
	case b.Type == "image" && b.Source.Type == "base64" && !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Source.MediaType):
		return claudeInvalid("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", where)
	}
	return nil
}

// sign returns the signature of thinking, which holds for one model.
func sign(model, thinking string) string {
	sum := sha256.Sum256([]byte(model + "\x00" + thinking))
	return base64.StdEncoding.EncodeToString([]byte("signed:" + hex.EncodeToString(sum[:])))
}

// validateToolUses checks that each call is answered, in the message that follows, before
// anything else of that message.
func validateToolUses(messages []claudeMessage, contents [][]claudeBlock) *Failure {
	seen := map[string]bool{}
	for i := range messages {
		var open []string
		for _, b := range contents[i] {
			if b.Type != "tool_use" {
				continue
			}
			if seen[b.ID] {
				return claudeInvalid("messages.%d: `tool_use` ids must be unique", i)
			}
			seen[b.ID] = true
			open = append(open, b.ID)
		}
		answered := map[string]bool{}
		if i+1 < len(messages) {
			other := false
			for k, b := range contents[i+1] {
				if b.Type != "tool_result" {
					other = true
					continue
				}
				switch {
				case !slices.Contains(open, b.ToolUseID):
					return claudeInvalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i+1, k, b.ToolUseID)
				case other:
					return claudeInvalid("messages.%d: `tool_result` blocks must come before other content", i+1)
				case answered[b.ToolUseID]:
					return claudeInvalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i+1, k, b.ToolUseID)
				}
				answered[b.ToolUseID] = true
			}
		}
		for _, id := range open {
			if !answered[id] {
				return claudeInvalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, id)
			}
		}
	}
	for _, b := range contents[0] {
		if b.Type == "tool_result" {
			return claudeInvalid("messages.0: unexpected `tool_result` block")
		}
	}
	return nil
}

// validateClaudeTools checks the tools and the choice of one.
func (w *messagesRequest) validateClaudeTools() *Failure {
	seen := map[string]bool{}
	for i, t := range w.Tools {
		if t.Type != "" && t.Type != "custom" {
			continue
		}
		switch {
		case !claudeToolName.MatchString(t.Name):
			return claudeInvalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case seen[t.Name]:
			return claudeInvalid("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		var schema map[string]any
		if json.Unmarshal(t.InputSchema, &schema) != nil || schema["type"] != "object" {
			return claudeInvalid("tools.%d.custom.input_schema.type: Field required", i)
		}
		for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
			if _, there := schema[keyword]; there {
				return claudeInvalid("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
	}
	c := w.ToolChoice
	switch {
	case c == nil:
	case len(w.Tools) == 0:
		return claudeInvalid("tool_choice: tool_choice may only be specified while providing tools")
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
		return claudeInvalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'none', 'tool'", c.Type)
	case c.Type == "tool" && !seen[c.Name]:
		return claudeInvalid("tool_choice.tool.name: Tool '%s' not found in provided tools", c.Name)
	}
	return nil
}

// validateThinking checks what thinking does not go with.
func (w *messagesRequest) validateThinking() *Failure {
	t := w.Thinking
	if t == nil || t.Type == "disabled" {
		return nil
	}
	switch {
	case t.Type != "enabled" && t.Type != "adaptive":
		return claudeInvalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'", t.Type)
	case t.Type == "enabled" && t.Budget < 1024:
		return claudeInvalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case t.Type == "enabled" && t.Budget >= *w.MaxTokens:
		return claudeInvalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case w.ToolChoice != nil && (w.ToolChoice.Type == "any" || w.ToolChoice.Type == "tool"):
		return claudeInvalid("Thinking may not be enabled when tool_choice forces tool use.")
	case w.Temperature != nil && *w.Temperature != 1:
		return claudeInvalid("`temperature` may only be set to 1 when thinking is enabled.")
	}
	return nil
}
