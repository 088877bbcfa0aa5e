// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// This file has the rules of Messages about a request as a whole. Their sources are the API
// reference (https://platform.claude.com/docs/en/api/messages, looked up on 2026-11-22) or the
// report that a comment names, which quotes the message of Anthropic.

// validate refuses requests that Anthropic would refuse.
func (w *messagesRequest) validate(contents [][]claudeBlock) *Failure {
	for _, check := range []func([][]claudeBlock) *Failure{
		w.validateSettings, w.validateRoles, w.validateBlocks, w.validateSystem, w.validateToolUses, w.validateServerTools,
		w.validateTools, w.validateMCPServers, w.validateToolChoice, w.validateThinking, w.validateEnd, w.validateCache,
	} {
		if failure := check(contents); failure != nil {
			return failure
		}
	}
	return nil
}

// validateSettings checks the members other than messages and tools.
func (w *messagesRequest) validateSettings([][]claudeBlock) *Failure {
	switch {
	case w.Model == "":
		return claudeInvalid("model: Field required")
	case w.MaxTokens == nil:
		return claudeInvalid("max_tokens: Field required")
	case *w.MaxTokens < 1:
		return claudeInvalid("max_tokens: Input should be greater than or equal to 1")
	case w.Temperature != nil && (*w.Temperature < 0 || *w.Temperature > 1):
		return claudeInvalid("temperature: range: 0..1")
	case w.TopP != nil && (*w.TopP < 0 || *w.TopP > 1):
		return claudeInvalid("top_p: range: 0..1")
	case w.Temperature != nil && w.TopP != nil: // github.com/langfuse/langfuse/issues/9882
		return claudeInvalid("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	case w.ServiceTier != nil && *w.ServiceTier != "auto" && *w.ServiceTier != "standard_only":
		return claudeInvalid("service_tier: Input should be 'auto' or 'standard_only'")
	case slices.ContainsFunc(w.StopSequences, blank): // github.com/BerriAI/litellm/issues/3286
		return claudeInvalid("stop_sequences: each stop sequence must contain non-whitespace")
	}
	return nil
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// validateRoles checks the order of the messages.
func (w *messagesRequest) validateRoles(contents [][]claudeBlock) *Failure {
	if len(w.Messages) == 0 {
		return claudeInvalid("messages: at least one message is required")
	}
	for i, m := range w.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return claudeInvalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case len(contents[i]) == 0:
			return claudeInvalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	if w.Messages[0].Role != "user" {
		return claudeInvalid("messages: first message must use the \"user\" role")
	}
	return nil
}

// validateSystem checks the system prompt.
func (w *messagesRequest) validateSystem([][]claudeBlock) *Failure {
	var text string
	if absent(w.System) || json.Unmarshal(w.System, &text) == nil {
		return nil
	}
	var blocks []claudeBlock
	if json.Unmarshal(w.System, &blocks) != nil {
		return claudeInvalid("system: Input should be a valid list")
	}
	for i, b := range blocks {
		if b.Type != "text" || b.Text == nil {
			return claudeInvalid("system.%d.type: Input should be 'text'", i)
		}
		if blank(*b.Text) {
			return claudeInvalid("system: text content blocks must be non-empty")
		}
	}
	return nil
}

// validateToolUses checks that each call is answered, in the message that follows, before
// anything else of that message.
func (w *messagesRequest) validateToolUses(contents [][]claudeBlock) *Failure {
	seen := map[string]bool{}
	for i := range contents {
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
		var answers []claudeBlock
		if i+1 < len(contents) {
			answers = contents[i+1]
		}
		if failure := validateResults(i, open, answers); failure != nil {
			return failure
		}
	}
	for k, b := range contents[0] {
		if b.Type == "tool_result" {
			return unexpectedResult(0, k, b)
		}
	}
	return nil
}

// validateResults checks the results of the calls of message i, in the message after it.
func validateResults(i int, open []string, answers []claudeBlock) *Failure {
	answered, other := map[string]bool{}, false
	for k, b := range answers {
		switch {
		case b.Type != "tool_result":
			other = true
			continue
		case !slices.Contains(open, b.ToolUseID):
			return unexpectedResult(i+1, k, b)
		case other:
			return claudeInvalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
				"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, b.ToolUseID)
		case answered[b.ToolUseID]:
			return claudeInvalid("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i+1, k, b.ToolUseID)
		}
		answered[b.ToolUseID] = true
	}
	for _, id := range open {
		if !answered[id] {
			return claudeInvalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
				"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, id)
		}
	}
	return nil
}

// unexpectedResult is the refusal of a result without a call
// (github.com/anthropics/claude-code/issues/18947).
func unexpectedResult(i, k int, b claudeBlock) *Failure {
	return claudeInvalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
		"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, k, b.ToolUseID)
}

// validateServerTools checks that each call of a tool of the server has its result, in the
// same message. Only the last message of the assistant may have open ones: the server has
// paused there, or waits for a tool of the client
// (github.com/open-gsd/gsd-pi/issues/1330, github.com/anthropics/claude-code/issues/95406).
func (w *messagesRequest) validateServerTools(contents [][]claudeBlock) *Failure {
	last := w.lastAssistant()
	waits := last == len(contents)-1 || last >= 0 && contents[last+1][0].Type == "tool_result"
	for i, blocks := range contents {
		names := map[string]string{} // of open calls
		for k, b := range blocks {
			switch {
			case b.Type == "server_tool_use" || b.Type == "mcp_tool_use":
				names[b.ID] = b.Name
			case b.Type != "tool_result" && strings.HasSuffix(b.Type, "tool_result"):
				if _, open := names[b.ToolUseID]; !open {
					return claudeInvalid("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. "+
						"Each `%s` block must have a corresponding `server_tool_use` block before it.", i, k, b.Type, b.ToolUseID, b.Type)
				}
				delete(names, b.ToolUseID)
			}
		}
		for id, name := range names {
			if i != last || !waits {
				return claudeInvalid("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s_tool_result` block", i, name, id, name)
			}
		}
	}
	return nil
}

// lastAssistant returns the position of the last message of the assistant, or -1.
func (w *messagesRequest) lastAssistant() int {
	last := -1
	for i, m := range w.Messages {
		if m.Role == "assistant" {
			last = i
		}
	}
	return last
}

// claudeToolMembers are the members of a tool of the client.
var claudeToolMembers = strings.Fields("type name description input_schema cache_control strict eager_input_streaming defer_loading allowed_callers input_examples")

// legalProperty matches the names of arguments. Only those at the top are checked
// (github.com/beautyfree/appstore-connect-mcp/issues/2,
// github.com/aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709).
var legalProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// validateTools checks the tools.
func (w *messagesRequest) validateTools([][]claudeBlock) *Failure {
	seen := map[string]bool{}
	for i, t := range w.Tools {
		if seen[t.Name] && t.Type != mcpToolset {
			return claudeInvalid("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if !t.isClients() {
			continue
		}
		if !claudeToolName.MatchString(t.Name) {
			return claudeInvalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		}
		if name := unknownMember(t.members, claudeToolMembers); name != "" {
			return claudeInvalid("tools.%d.custom.%s: Extra inputs are not permitted", i, name)
		}
		if failure := validateInputSchema(i, t.InputSchema); failure != nil {
			return failure
		}
	}
	return nil
}

// mcpToolset is the type of a tool that stands for the tools of an MCP server.
const mcpToolset = "mcp_toolset"

// validateMCPServers checks that each MCP server has its toolset
// (github.com/anthropics/anthropic-sdk-csharp/issues/255).
func (w *messagesRequest) validateMCPServers([][]claudeBlock) *Failure {
	for _, server := range w.MCPServers {
		if !slices.ContainsFunc(w.Tools, func(t claudeTool) bool { return t.Type == mcpToolset && t.Server == server.Name }) {
			return claudeInvalid("MCP server '%s' is defined but not referenced by any mcp_toolset in tools.", server.Name)
		}
	}
	return nil
}

// validateInputSchema checks the schema of a tool
// (github.com/nspady/google-calendar-mcp/issues/39).
func validateInputSchema(i int, raw json.RawMessage) *Failure {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil || schema["type"] != "object" {
		return claudeInvalid("tools.%d.custom.input_schema.type: Field required", i)
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		if _, there := schema[keyword]; there {
			return claudeInvalid("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		if !legalProperty.MatchString(name) {
			return claudeInvalid("tools.%d.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", i)
		}
	}
	return nil
}

// validateToolChoice checks the choice of a tool.
func (w *messagesRequest) validateToolChoice([][]claudeBlock) *Failure {
	c := w.ToolChoice
	switch {
	case c == nil:
	case len(w.Tools) == 0:
		return claudeInvalid("tool_choice: tool_choice may only be specified while providing tools")
	case !slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type):
		return claudeInvalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'auto', 'any', 'none', 'tool'", c.Type)
	case c.Type == "none" && c.Disable != nil:
		return claudeInvalid("tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted")
	case c.Type == "tool" && !slices.ContainsFunc(w.Tools, func(t claudeTool) bool { return t.Name == c.Name }):
		return claudeInvalid("tool_choice.tool.name: Tool '%s' not found in provided tools", c.Name)
	}
	return nil
}

// validateThinking checks what thinking does not go with (Build with Claude, Extended
// thinking).
func (w *messagesRequest) validateThinking(contents [][]claudeBlock) *Failure {
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
	case w.TopK != nil:
		return claudeInvalid("`top_k` must be unset when thinking is enabled.")
	case w.TopP != nil && *w.TopP < 0.95:
		return claudeInvalid("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")
	case t.Type == "enabled":
		return w.validateFirstBlock(contents)
	}
	return nil
}

// validateFirstBlock checks that the turn which goes on began with thinking, if thinking has
// a budget (github.com/zed-industries/zed/pull/33317,
// github.com/anthropics/claude-code/issues/11978).
func (w *messagesRequest) validateFirstBlock(contents [][]claudeBlock) *Failure {
	last := w.lastAssistant()
	if last < 0 {
		return nil
	}
	isCall := func(b claudeBlock) bool { return b.Type == "tool_use" }
	goesOn := last == len(contents)-1 || slices.ContainsFunc(contents[last], isCall)
	if first := contents[last][0].Type; goesOn && first != "thinking" && first != "redacted_thinking" {
		return claudeInvalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. "+
			"When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). "+
			"We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", last, first)
	}
	return nil
}

// validateEnd checks a request that ends with a message of the assistant. Current models
// go on with one only after a pause of the server.
func (w *messagesRequest) validateEnd(contents [][]claudeBlock) *Failure {
	last := len(contents) - 1
	if w.Messages[last].Role != "assistant" {
		return nil
	}
	end := contents[last][len(contents[last])-1]
	isServers := func(b claudeBlock) bool {
		return b.Type != "tool_use" && (strings.HasSuffix(b.Type, "tool_use") || strings.HasSuffix(b.Type, "tool_result"))
	}
	switch {
	case end.Type == "text" && end.Text != nil && strings.TrimRight(*end.Text, " \t\r\n") != *end.Text: // github.com/tailcallhq/forgecode/issues/1872
		return claudeInvalid("messages: final assistant content cannot end with trailing whitespace")
	case !slices.ContainsFunc(contents[last], isServers): // github.com/cortexkit/magic-context/issues/511
		return claudeInvalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

// maxCacheMarks is how many places a request can mark for the cache; the one for the whole
// request counts (Build with Claude, Prompt caching; github.com/tghamm/Anthropic.SDK/issues/50).
const maxCacheMarks = 4

// validateCache counts the places that are marked for the cache.
func (w *messagesRequest) validateCache([][]claudeBlock) *Failure {
	n := 0
	if w.CacheControl != nil {
		n++
	}
	count := func(raw json.RawMessage) {
		var blocks []struct {
			CacheControl *json.RawMessage `json:"cache_control"`
		}
		if json.Unmarshal(raw, &blocks) != nil {
			return // a text
		}
		for _, b := range blocks {
			if b.CacheControl != nil {
				n++
			}
		}
	}
	count(w.System)
	for _, m := range w.Messages {
		count(m.Content)
	}
	for _, t := range w.Tools {
		if !absent(t.members["cache_control"]) {
			n++
		}
	}
	if n > maxCacheMarks {
		return claudeInvalid("A maximum of %d blocks with cache_control may be provided. Found %d.", maxCacheMarks, n)
	}
	return nil
}
