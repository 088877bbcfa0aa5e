// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/redact"
)

// message is a message in the form of the conventions
// (gen-ai-input-messages.json, gen-ai-output-messages.json).
type message struct {
	Role   string `json:"role"`
	Finish string `json:"finish_reason,omitempty"`
	Parts  []part `json:"parts"`
}

// part is a part of a message. Fields that may be long are last, because
// shortening removes the end. The bytes of images and sounds are not recorded,
// only their number.
type part struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	MIME      string          `json:"mime_type,omitempty"`
	Modality  string          `json:"modality,omitempty"`
	URI       string          `json:"uri,omitempty"`
	Bytes     int             `json:"bytes,omitempty"`
	Content   *string         `json:"content,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  *response       `json:"response,omitempty"`
}

// response is the answer of a tool.
type response struct {
	Error   string `json:"error,omitempty"` // the code of the failure
	Content []part `json:"content"`
}

// tool is a definition of a tool (gen-ai-tool-definitions.json).
type tool struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// omitted is the type of the part or tool that replaces the ones that did not
// fit.
const omitted = "omitted"

// turnsOf divides a history into messages: an Assistant and the Invocations after
// it are one message.
func turnsOf(history []canister.Canister) [][]canister.Canister {
	var turns [][]canister.Canister
	for i, c := range history {
		_, invocation := c.(canister.Invocation)
		if last := len(turns) - 1; invocation && last >= 0 && ofModel(turns[last][0]) {
			turns[last] = turns[last][:len(turns[last])+1]
			continue
		}
		turns = append(turns, history[i:i+1])
	}
	return turns
}

// ofModel reports whether c is from the model.
func ofModel(c canister.Canister) bool {
	switch c.(type) {
	case canister.Assistant, canister.Invocation:
		return true
	}
	return false
}

// callsOf maps the IDs of invocations to the model's call IDs.
func callsOf(history []canister.Canister) map[string]string {
	calls := map[string]string{}
	for _, c := range history {
		if invocation, ok := c.(canister.Invocation); ok {
			calls[invocation.ID] = invocation.CallID
		}
	}
	return calls
}

// messageOf returns the message for a turn. The roles are the ones that a model
// server sees: a document is a message of the user.
func messageOf(turn []canister.Canister, calls map[string]string, clean func(string) string) message {
	m := message{Role: "user", Parts: []part{}}
	for _, c := range turn {
		switch c := c.(type) {
		case canister.User:
			m.Parts = append(m.Parts, partsOf(cleaned(c.Content, clean))...)
		case canister.Document:
			if c.Title != "" || c.URI != "" {
				m.Parts = partsOf(cleaned([]canister.Content{canister.LinkContent{URI: c.URI, Name: c.Title}}, clean))
			}
			m.Parts = append(m.Parts, partsOf(cleaned(c.Content, clean))...)
		case canister.Supervisor:
			m.Role, m.Parts = "system", append(m.Parts, partsOf(cleaned(c.Content, clean))...)
		case canister.Assistant:
			m.Role, m.Parts = "assistant", append(m.Parts, partsOf(cleaned(c.Content, clean))...)
		case canister.Invocation:
			m.Role, m.Parts = "assistant", append(m.Parts, callPart(c, clean))
		case canister.Result:
			id := calls[c.Invocation]
			if clean != nil {
				id = clean(id)
			}
			answer := part{Type: "tool_call_response", ID: id,
				Response: &response{Error: c.Code, Content: partsOf(cleaned(c.Content, clean))}}
			m.Role, m.Parts = "tool", append(m.Parts, answer)
		case canister.Intent, canister.Wait, canister.Answer: // the model never sees them
		}
	}
	return m
}

// callPart returns the part for a tool call by the model.
func callPart(c canister.Invocation, clean func(string) string) part {
	id, name, arguments := c.CallID, c.Name, object(c.Arguments, "text")
	if clean != nil {
		id, name, arguments = clean(id), clean(name), redact.JSON(arguments, clean)
	}
	return part{Type: "tool_call", ID: id, Name: bounded(name, maxName), Arguments: arguments}
}

func cleaned(contents []canister.Content, clean func(string) string) []canister.Content {
	if clean == nil {
		return contents
	}
	return redact.Contents(contents, clean)
}

// partsOf converts contents to parts.
func partsOf(contents []canister.Content) []part {
	parts := make([]part, 0, len(contents))
	for _, content := range contents {
		switch c := content.(type) {
		case canister.TextContent:
			parts = append(parts, part{Type: "text", Content: &c.Text})
		case canister.StructuredContent:
			text := string(c.JSON)
			parts = append(parts, part{Type: "text", MIME: "application/json", Content: &text})
		case canister.LinkContent:
			parts = append(parts, part{Type: "uri", Modality: modality(c.MIME), MIME: c.MIME, Name: c.Name, URI: c.URI})
		case canister.ResourceContent:
			if c.Blob == nil {
				parts = append(parts, part{Type: "text", MIME: c.MIME, URI: c.URI, Content: &c.Text})
			} else {
				p := filePart(modality(c.MIME), c.MIME, "", len(c.Blob))
				p.URI = c.URI
				parts = append(parts, p)
			}
		default:
			if p := canister.PayloadOf(c); p.Type != "" { // image or audio, as the conventions name them
				parts = append(parts, filePart(p.Type, p.MIME, p.URI, len(p.Data)))
			}
		}
	}
	return parts
}

// filePart returns the part for an image or another file: its description and
// location, without its bytes.
func filePart(modality, mime, uri string, size int) part {
	if uri != "" && !strings.HasPrefix(uri, "data:") {
		return part{Type: "uri", Modality: modality, MIME: mime, URI: uri}
	}
	none := "" // the schema requires content
	return part{Type: "blob", Modality: modality, MIME: mime, Bytes: max(size, len(uri)), Content: &none}
}

// modality returns the kind of a file as the conventions name it.
func modality(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
