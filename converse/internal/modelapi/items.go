// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/tidwall/gjson"
)

// Item is one item of an answer, in the metadata of its message. The items, with the
// content of the message and its invocations, are what the server needs to see again.
type Item struct {
	Type string `json:"type"`
	// Item is the item as the server sent it. It is empty where the item is written from
	// the canisters: for messages and calls.
	Item json.RawMessage `json:"item,omitempty"`
	// Contents is how many contents of the message belong to the item.
	Contents int `json:"contents,omitempty"`
	// Refusals has the positions of contents, within the item, that are refusals.
	Refusals []int `json:"refusals,omitempty"`
	// Call is the CallID of the invocation that the item is.
	Call string `json:"call,omitempty"`
	// Phase is the phase of a message.
	Phase string `json:"phase,omitempty"`
}

// KeepItems returns metadata with the items of an answer. Only this server, with that
// model, gets them back.
func (s *Server) KeepItems(key, model string, items []Item) canister.Fields {
	if len(items) == 0 {
		return nil
	}
	text, err := json.Marshal(items)
	if err != nil {
		return nil
	}
	return s.Keep(key, model, text)
}

// KeptItems returns the items of an answer that KeepItems stored: nil if they came from
// another server or model, or no longer match the canisters. call is the type of the items
// that are calls.
func (s *Server) KeptItems(g *Group, key, model, call string) []Item {
	kept := s.Kept(g.Message.Metadata, key, model)
	var items []Item
	if kept == nil || json.Unmarshal(kept, &items) != nil {
		return nil
	}
	contents, calls := 0, 0
	for _, item := range items {
		raw := gjson.ParseBytes(item.Item)
		if item.Contents < 0 || item.Contents > len(g.Message.Content) || len(item.Item) > 0 && (!raw.IsObject() || raw.Get("role").String() != "" && raw.Get("role").String() != "assistant") {
			return nil // it was not written by KeepItems
		}
		contents += item.Contents
		if item.Type == call {
			if calls == len(g.Invocations) || g.Invocations[calls].CallID != item.Call {
				return nil
			}
			calls++
		}
	}
	if contents != len(g.Message.Content) || calls != len(g.Invocations) {
		return nil
	}
	return items
}

// maxShown limits the result of a hosted tool in the content of an answer, in bytes.
const maxShown = 64 << 10

// Shown returns the content for an item of a hosted tool: the item without its IDs
// and its encrypted members, and without a result of more than 64 KiB. People and other servers see the content, and only this server
// can read those. [Server.KeepItems] stores the whole item.
func Shown(item []byte) json.RawMessage {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(item))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return item
	}
	delete(members, "id")
	delete(members, "tool_use_id")
	if data, ok := members["result"].(string); ok && len(data) > maxShown { // an image
		members["result"] = fmt.Sprintf("[%d bytes are left out]", len(data))
	}
	unsealed(members)
	text, err := jsontext.Encode(members)
	if err != nil {
		return item
	}
	return text
}

// citationsKey is the member of a text's metadata with the sources that it cites.
const citationsKey = "io.github.consort-go/citations"

// Cited returns a text of an answer. Its metadata has the sources that it cites, such as
// pages of a web search, as the server sent them but without encrypted members.
func Cited(text string, citations []json.RawMessage) canister.TextContent {
	content := canister.Text(text)
	if len(citations) == 0 {
		return content
	}
	shown := make([]json.RawMessage, len(citations))
	for i, citation := range citations {
		shown[i] = Shown(citation)
	}
	if list, err := json.Marshal(shown); err == nil {
		content.Metadata = canister.Fields{citationsKey: list}
	}
	return content
}

// unsealed removes members that are encrypted or signed, at any depth.
func unsealed(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if strings.HasPrefix(name, "encrypted_") || name == "signature" {
				delete(value, name)
			}
			unsealed(member)
		}
	case []any:
		for _, element := range value {
			unsealed(element)
		}
	}
}
