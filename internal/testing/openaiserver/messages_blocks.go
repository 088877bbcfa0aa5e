// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// This file has the rules of Messages about one block of a content. Their sources are the
// API reference (https://platform.claude.com/docs/en/api/messages, looked up on 2026-11-22) or the
// report that a comment names, which quotes the message of Anthropic.

// blockKinds are the blocks that each role may have.
var blockKinds = map[string][]string{
	"user": {"text", "image", "document", "tool_result", "search_result"},
	"assistant": {"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result",
		"code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
		"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result"},
}

// resultKinds are the blocks that a result may have.
var resultKinds = []string{"text", "image", "document", "search_result", "tool_reference"}

// blockMembers are the members of the blocks that the client writes.
var blockMembers = map[string][]string{
	"text":              strings.Fields("type text citations cache_control"),
	"image":             strings.Fields("type source cache_control"),
	"document":          strings.Fields("type source title context citations cache_control"),
	"tool_use":          strings.Fields("type id name input caller cache_control"),
	"tool_result":       strings.Fields("type tool_use_id content is_error cache_control"),
	"thinking":          strings.Fields("type thinking signature"),
	"redacted_thinking": strings.Fields("type data"),
}

// unknownMember returns the name of a member that is not in known, or "".
func unknownMember(members map[string]json.RawMessage, known []string) string {
	for name := range members {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// validateBlocks checks each block by itself.
func (w *messagesRequest) validateBlocks(contents [][]claudeBlock) *Failure {
	for i, m := range w.Messages {
		var members []map[string]json.RawMessage
		_ = json.Unmarshal(m.Content, &members) // a text has none
		for k, b := range contents[i] {
			where := at("messages.%d.content.%d", i, k)
			if !slices.Contains(blockKinds[m.Role], b.Type) {
				return claudeInvalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags for the role '%s'", where, b.Type, m.Role)
			}
			if known := blockMembers[b.Type]; known != nil && members != nil {
				if name := unknownMember(members[k], known); name != "" {
					return claudeInvalid("%s.%s.%s: Extra inputs are not permitted", where, b.Type, name)
				}
			}
			if failure := w.validateBlock(where, b); failure != nil {
				return failure
			}
		}
		if last := contents[i][len(contents[i])-1].Type; last == "thinking" || last == "redacted_thinking" { // github.com/tailcallhq/forgecode/issues/2107
			return claudeInvalid("messages.%d: The final block in an assistant message cannot be `%s`.", i, last)
		}
	}
	return nil
}

// validateBlock checks one block. where is its place in the request.
func (w *messagesRequest) validateBlock(where string, b claudeBlock) *Failure {
	switch b.Type {
	case "text":
		switch {
		case b.Text == nil:
			return claudeInvalid("%s.text.text: Field required", where)
		case *b.Text == "": // github.com/anthropics/claude-code/issues/55645
			return claudeInvalid("messages: text content blocks must be non-empty")
		case blank(*b.Text):
			return claudeInvalid("messages: text content blocks must contain non-whitespace text")
		}
	case "tool_use":
		switch {
		case !legalID.MatchString(b.ID):
			return claudeInvalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", where)
		case !legalName.MatchString(b.Name):
			return claudeInvalid("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", where)
		case !strings.HasPrefix(strings.TrimSpace(string(b.Input)), "{"):
			return claudeInvalid("%s.tool_use.input: Input should be a valid dictionary", where)
		}
	case "thinking":
		switch {
		case b.Thinking == nil:
			return claudeInvalid("%s.thinking.thinking: Field required", where)
		case b.Signature == "":
			return claudeInvalid("%s.thinking.signature: Field required", where)
		case b.Signature != sign(w.Model, *b.Thinking):
			return claudeInvalid("%s: Invalid `signature` in `thinking` block", where)
		}
	case "redacted_thinking":
		if b.Data == "" {
			return claudeInvalid("%s.redacted_thinking.data: Field required", where)
		}
	case "image", "document":
		return validateSource(where, b)
	case "tool_result":
		return w.validateResult(where, b)
	}
	return nil
}

// sign returns the signature of thinking, which holds for one model.
func sign(model, thinking string) string {
	sum := sha256.Sum256([]byte(model + "\x00" + thinking))
	return base64.StdEncoding.EncodeToString([]byte("signed:" + hex.EncodeToString(sum[:])))
}

// validateResult checks a result and the blocks in it
// (github.com/can1357/oh-my-pi/issues/12809).
func (w *messagesRequest) validateResult(where string, b claudeBlock) *Failure {
	var text string
	if absent(b.Content) || json.Unmarshal(b.Content, &text) == nil {
		return nil
	}
	var blocks []claudeBlock
	if json.Unmarshal(b.Content, &blocks) != nil {
		return claudeInvalid("%s.tool_result.content: Input should be a valid list", where)
	}
	for k, inner := range blocks {
		where := at("%s.tool_result.content.%d", where, k)
		switch {
		case !slices.Contains(resultKinds, inner.Type):
			return claudeInvalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", where, inner.Type, strings.Join(resultKinds, "', '"))
		case b.IsError && inner.Type != "text":
			return claudeInvalid("%s.tool_result: all content must be type `text` if `is_error` is true", strings.TrimSuffix(where, at(".tool_result.content.%d", k)))
		}
		if failure := w.validateBlock(where, inner); failure != nil {
			return failure
		}
	}
	return nil
}

// validateSource checks where an image or a document comes from. The data of an image must
// be one, and of the type that it says (github.com/vybestack/llxprt-code/issues/2130,
// github.com/anthropics/claude-code/issues/15807).
func validateSource(where string, b claudeBlock) *Failure {
	s := b.Source
	switch {
	case s == nil || s.Data == "" && s.URL == "" && s.FileID == "" && s.Type != "content":
		return claudeInvalid("%s.%s.source: Field required", where, b.Type)
	case s.Type != "base64":
		return nil
	case b.Type == "document" && s.MediaType != "application/pdf":
		return claudeInvalid("%s.document.source.base64.media_type: Input should be 'application/pdf'", where)
	case b.Type == "image" && !slices.Contains(imageTypes, s.MediaType):
		return claudeInvalid("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", where)
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	switch is := http.DetectContentType(data); {
	case err != nil:
		return claudeInvalid("%s.%s.source.base64.data: Invalid base64 data", where, b.Type)
	case b.Type == "document" && is != "application/pdf":
		return claudeInvalid("%s.document.source.base64.data: The PDF specified was not valid.", where)
	case b.Type == "document":
		return nil
	case !slices.Contains(imageTypes, is):
		return claudeInvalid("%s.image.source.base64.data: Could not process image", where)
	case is != s.MediaType:
		return claudeInvalid("%s.image.source.base64: The image was specified using the %s media type, but the image appears to be a %s image", where, s.MediaType, is)
	}
	return nil
}

// imageTypes are the types of images that both providers take.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
