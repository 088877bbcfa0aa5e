// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
)

// members are the members of a request of OpenAI's API.
type members map[string]json.RawMessage

// readMembers reads a request and refuses the members that are not known. The header
// Consort-Ignored names the members without an effect.
func readMembers(w http.ResponseWriter, r *http.Request, known, ignored []string) (members, error) {
	var all members
	if err := parse(w, r, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, failure(http.StatusBadRequest, "invalid_json", "The body of the request is null, not a JSON object.", "Send one JSON object.")
	}
	var without []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case slices.Contains(known, name):
		case isEmpty(all[name]):
			delete(all, name)
		case slices.Contains(ignored, name):
			without = append(without, name)
		default:
			return nil, unsupported(name, "Leave it out.")
		}
	}
	if len(without) > 0 {
		w.Header().Set("Consort-Ignored", strings.Join(without, ", "))
	}
	return all, nil
}

// isEmpty reports whether a member has the same meaning as none.
func isEmpty(value json.RawMessage) bool {
	return slices.Contains([]string{"null", "[]", "{}", `""`}, string(bytes.TrimSpace(value)))
}

// unsupported returns the error for a member that this server cannot obey.
func unsupported(name, advice string) error {
	return failure(http.StatusBadRequest, "unsupported_parameter", fmt.Sprintf("%q is not supported by this server.", name), advice).about(name)
}

// read reads a member, if it is there.
func (m members) read(name string, to any) error {
	value, is := m[name]
	if !is || string(bytes.TrimSpace(value)) == "null" {
		return nil
	}
	if err := json.Unmarshal(value, to); errors.Is(err, lists.ErrTooLong) {
		return err
	} else if err != nil {
		return invalid(name, "It does not have the type that OpenAI's API documents.", "See OpenAI's API reference.")
	}
	return nil
}

// only refuses a member unless it has one of some values, which are JSON.
func (m members) only(name string, values ...string) error {
	var compact bytes.Buffer
	value, is := m[name]
	if !is || json.Compact(&compact, value) != nil || compact.String() == "null" || slices.Contains(values, compact.String()) {
		return nil
	}
	return unsupported(name, "Leave it out, or use one of "+strings.Join(values, ", ")+".")
}

// openAI serves the requests of OpenAI's clients.
type openAI struct{ h *handler }

// model returns the name of the model of a request.
func (o openAI) model(m members) (string, error) {
	models := o.h.Models()
	name := models[0]
	if err := m.read("model", &name); err != nil {
		return "", err
	}
	if !slices.Contains(models, name) {
		return "", failure(http.StatusNotFound, "model_not_found", fmt.Sprintf("There is no model %q.", name), fmt.Sprintf("Use one of %q.", models)).about("model")
	}
	return name, nil
}

func modelOf(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "consort"}
}

// models lists the names of the models.
func (o openAI) models(w http.ResponseWriter, r *http.Request) error {
	if _, err := o.h.owner(r.Context()); err != nil {
		return err
	}
	all := []map[string]any{}
	for _, name := range o.h.Models() {
		all = append(all, modelOf(name))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
	return nil
}

// oneModel writes one of the models.
func (o openAI) oneModel(w http.ResponseWriter, r *http.Request) error {
	if _, err := o.h.owner(r.Context()); err != nil {
		return err
	}
	name, _ := json.Marshal(r.PathValue("model")) // a string has a JSON form
	known, err := o.model(members{"model": name})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, modelOf(known))
	return nil
}

// inputMessage is a message of a request, of Chat Completions or Responses.
type inputMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// The others are refused, or belong to one of the APIs.
	Audio json.RawMessage `json:"audio"`
	// ToolCalls are the calls of a message, and ToolCallID is the ID of the call that a result answers.
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	calls      []toolCall      // of ToolCalls
	// CallID and Output belong to a function_call_output, CallID, Name and Arguments to a
	// function_call.
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	// Server and Error belong to an mcp_call, with Name, Arguments and Output.
	Server string          `json:"server_label"`
	Error  json.RawMessage `json:"error"`
	// ApprovalRequest, Approve and Reason belong to an mcp_approval_response.
	ApprovalRequest string `json:"approval_request_id"`
	Approve         *bool  `json:"approve"`
	Reason          string `json:"reason"`
}

// canister returns a message as a canister. at names it in errors.
func (s *inputMessage) canister(at string) (canister.Canister, error) {
	if !isNothing(s.Audio) {
		return nil, unsupported(at+".audio", "Send text.")
	}
	content, err := partsOf(at+".content", s.Content)
	if err != nil {
		return nil, err
	}
	switch s.Role {
	case "system", "developer":
		return canister.Supervisor{Content: content}, nil
	case "user":
		return canister.User{Content: content}, nil
	case "assistant":
		return canister.Assistant{Content: content, Finish: canister.FinishStop}, nil
	}
	return nil, unsupported(at+".role", `Use "system", "developer", "user", "assistant" or "tool".`)
}

func isNothing(value json.RawMessage) bool { return len(value) == 0 || isEmpty(value) }

// part is a piece of a message.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // an object in Chat Completions, a string in Responses
	Audio    struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	Source struct { // of an image of AG-UI
		Type  string `json:"type"`
		Value string `json:"value"`
		MIME  string `json:"mimeType"`
	} `json:"source"`
}

// partsOf reads the content of a message: a string or a list of parts.
func partsOf(at string, value json.RawMessage) ([]canister.Content, error) {
	if isNothing(value) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return canister.Texts(text), nil
	}
	var parts lists.Of[part]
	if err := json.Unmarshal(value, &parts); errors.Is(err, lists.ErrTooLong) {
		return nil, err
	} else if err != nil {
		return nil, invalid(at, "It is neither a string nor a list of parts.", "See OpenAI's API reference.")
	}
	var all []canister.Content
	for i, p := range parts {
		one, err := p.content(fmt.Sprintf("%s[%d]", at, i))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (p *part) content(at string) (canister.Content, error) {
	switch p.Type {
	case "text", "input_text", "output_text":
		return canister.Text(p.Text), nil
	case "refusal":
		return canister.Text(p.Refusal), nil
	case "image_url", "input_image":
		var object struct{ URL string }
		address := ""
		if json.Unmarshal(p.ImageURL, &address) != nil {
			_ = json.Unmarshal(p.ImageURL, &object) // an empty URL is refused
			address = object.URL
		}
		return image(at+".image_url", address)
	case "image":
		if p.Source.Type == "data" {
			return image(at+".source", "data:"+p.Source.MIME+";base64,"+p.Source.Value)
		}
		return image(at+".source", p.Source.Value)
	case "input_audio":
		kind := map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}[p.Audio.Format]
		if _, err := base64.StdEncoding.DecodeString(p.Audio.Data); err != nil || kind == "" {
			return nil, unsupported(at+".input_audio", "Send wav or mp3 in base64.")
		}
		return contentFromForm(map[string]string{"type": "audio", "mime": kind, "data": p.Audio.Data})
	}
	return nil, unsupported(at+".type", "Send text, images or audio.")
}

// image returns the image at an address.
func image(at, address string) (canister.Content, error) {
	if strings.HasPrefix(address, "https://") {
		return contentFromForm(map[string]string{"type": "image", "url": address})
	}
	kind, data, err := dataURL(address)
	if err != nil {
		return nil, unsupported(at, "Send an https URL, or the image itself in base64.")
	}
	return contentFromForm(map[string]string{"type": "image", "mime": kind, "data": data})
}

// dataURL returns the media type and the base64 of a data URL (RFC 2397).
func dataURL(address string) (kind, data string, err error) {
	head, data, hasData := strings.Cut(strings.TrimPrefix(address, "data:"), ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	_, err = base64.StdEncoding.DecodeString(data)
	if !strings.HasPrefix(address, "data:") || !hasData || !isBase64 || err != nil {
		return "", "", fmt.Errorf("httpapi: not a data URL")
	}
	return kind, data, nil
}

// contentFromForm returns the content that has a JSON form.
func contentFromForm(form map[string]string) (canister.Content, error) {
	list, err := json.Marshal([]map[string]string{form})
	if err != nil {
		return nil, err
	}
	all, err := contents(list)
	if err != nil {
		return nil, invalid("content", err.Error()+".", "Send other content.")
	}
	return all[0], nil
}

// isLimit reports whether a turn was cut short.
func isLimit(reason converse.Reason) bool { return reason == converse.ReasonLength || reason.Limited() }
