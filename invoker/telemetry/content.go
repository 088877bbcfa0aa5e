// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/redact"
	"go.opentelemetry.io/otel/attribute"
)

// wanted reports whether content is recorded.
func (o *operation) wanted() bool { return o.telemetry.options.Content && o.span.IsRecording() }

// recordJSON records a JSON value, if that is wanted.
func (o *operation) recordJSON(key attribute.Key, value json.RawMessage) {
	if !o.wanted() || len(value) == 0 {
		return
	}
	if clean := redact.Trusted(o.ctx, o.telemetry.options.Redact); clean != nil {
		value = redact.JSON(value, clean)
	}
	o.span.SetAttributes(key.String(cut(string(value), o.telemetry.options.ContentBytes)))
}

// recordContent records contents, if that is wanted, as JSON.
func (o *operation) recordContent(key attribute.Key, content []canister.Content) {
	if !o.wanted() || len(content) == 0 {
		return
	}
	parts := make([]any, len(content))
	for i, c := range content {
		parts[i] = partOf(c)
	}
	if text, err := json.Marshal(parts); err == nil {
		o.recordJSON(key, text)
	}
}

// part is one of the parts that the conventions' messages are made of.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  any             `json:"response,omitempty"`
}

// partOf is a content as a part: images and sounds are no more than a word.
func partOf(content canister.Content) part {
	return part{Type: "text", Content: canister.TextOf([]canister.Content{content})}
}

// message is a message in the form of the conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

func (c *Chat) recordRequest(ChatRequest) {}

func (c *Chat) recordAnswer(ChatResult) {}
