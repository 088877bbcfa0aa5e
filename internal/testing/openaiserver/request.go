// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// Request is a request to one of the APIs, as passed to a [Respond] function. Under
// [Options.Trust] only Model, Position, Stream, Header and Body are set, and Model is
// "scripted".
type Request struct {
	Model    string
	Messages []RequestMessage
	Tools    []Tool
	// Stream reports whether the answer should be streamed.
	Stream bool
	// Position is the number of assistant messages in the history.
	Position int
	// Header holds the headers of the HTTP request.
	Header http.Header
	// Body is the request as it was received. It is valid only until the reply has been
	// sent.
	Body []byte

	includeUsage bool
	api          api
	encrypt      bool // the request wants encrypted reasoning
	thinks       bool // the request turns thinking on
}

// RequestMessage is one message of a request.
type RequestMessage struct {
	Role string
	// Text is the text parts of the content, joined by newlines.
	Text string
	// Content is the content as it was received; nil if absent.
	Content json.RawMessage
	// Calls are the tool calls of an assistant message.
	Calls []Call
	// ToolCallID is the ID of the call that a tool message answers.
	ToolCallID string
}

// Tool is a tool offered to the model.
type Tool struct {
	Name        string
	Description string
	// Parameters is the schema as it was received; nil if absent.
	Parameters json.RawMessage
}

// ToolNames returns the names of the offered tools, in the order of the request.
func (r *Request) ToolNames() []string {
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	return names
}

// fresh returns the messages after the last assistant message, or the very last message
// if nothing follows it. Without an assistant message it returns all messages.
func (r *Request) fresh() []RequestMessage {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "assistant" {
			return r.Messages[min(i+1, len(r.Messages)-1):]
		}
	}
	return r.Messages
}

// wireRequest is the JSON form of a request, limited to the members that are read.
type wireRequest struct {
	Model               string          `json:"model"`
	Messages            []wireMessage   `json:"messages"`
	Tools               []wireTool      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	ResponseFormat      *wireFormat     `json:"response_format"`
	Stream              bool            `json:"stream"`
	StreamOptions       *wireStream     `json:"stream_options"`
	N                   *int            `json:"n"`
	Temperature         *float64        `json:"temperature"`
	TopP                *float64        `json:"top_p"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                json.RawMessage `json:"stop"`
	Seed                *int64          `json:"seed"`
	ReasoningEffort     *string         `json:"reasoning_effort"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Refusal    *string         `json:"refusal"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Reasoning  string          `json:"reasoning_content"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
	Extra struct {
		Google struct {
			ThoughtSignature string `json:"thought_signature"`
		} `json:"google"`
	} `json:"extra_content"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"function"`
}

type wireFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict *bool           `json:"strict"`
	} `json:"json_schema"`
}

type wireStream struct {
	IncludeUsage bool `json:"include_usage"`
}

// wirePart is one part of a content that is an array.
type wirePart struct {
	Type       string          `json:"type"`
	Text       *string         `json:"text"`
	Refusal    *string         `json:"refusal"`
	ImageURL   json.RawMessage `json:"image_url"`
	InputAudio json.RawMessage `json:"input_audio"`
	File       json.RawMessage `json:"file"`
}

// parseRequest parses and checks a request, also by the rules of a provider. The failure is the answer to the client.
func parseRequest(body []byte, header http.Header, provider string) (*Request, *Failure) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return nil, invalid(wrong.Field, "invalid_type", "Invalid type for '%s': got %s instead.", wrong.Field, wrong.Value)
		}
		return nil, invalid("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON payload.)")
	}
	if failure := validate(&wire); failure != nil {
		return nil, failure
	}
	if failure := validateProvider(&wire, provider); failure != nil {
		return nil, failure
	}
	r := &Request{
		Model:        wire.Model,
		Stream:       wire.Stream,
		Header:       header,
		Body:         body,
		includeUsage: wire.StreamOptions != nil && wire.StreamOptions.IncludeUsage,
	}
	for _, m := range wire.Messages {
		r.Messages = append(r.Messages, m.message())
		if m.Role == "assistant" {
			r.Position++
		}
	}
	for _, t := range wire.Tools {
		r.Tools = append(r.Tools, Tool{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return r, nil
}

// skimRequest reads only the members of a compact request that are needed to choose and
// send a scripted reply. In a JSON string every quotation mark is escaped, so the
// patterns cannot occur in the text of a message. Each answer in a request to Responses
// must have a text, since its other items have no role.
func skimRequest(kind api, body []byte, header http.Header) *Request {
	r := &Request{api: kind, Model: "scripted", Header: header, Body: body}
	for rest := body; ; rest = rest[1:] { // bytes.Count takes several times as long
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			return r
		}
		rest = rest[i:]
		switch {
		case bytes.HasPrefix(rest, []byte(`"role":"assistant"`)):
			r.Position++
		case bytes.HasPrefix(rest, []byte(`"stream":true`)):
			r.Stream = true
		case bytes.HasPrefix(rest, []byte(`"include_usage":true`)):
			r.includeUsage = true
		}
	}
}

// message converts a checked message to its public form.
func (m *wireMessage) message() RequestMessage {
	out := RequestMessage{Role: m.Role, ToolCallID: m.ToolCallID}
	if !absent(m.Content) {
		out.Content = m.Content
		text, parts, _ := readContent(m.Content)
		for i, p := range parts {
			if p.Text == nil {
				continue
			}
			if i > 0 {
				text += "\n"
			}
			text += *p.Text
		}
		out.Text = text
	}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: *c.Function.Arguments})
	}
	return out
}

// readContent reads a content: a string, or an array of parts. ok is false if it is
// neither.
func readContent(raw json.RawMessage) (text string, parts []wirePart, ok bool) {
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, true
	}
	err := json.Unmarshal(raw, &parts)
	return "", parts, err == nil
}

// absent reports whether a member is missing or null.
func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || strings.TrimSpace(string(raw)) == "null"
}
