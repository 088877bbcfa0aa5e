// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/canister"
)

// This file has the part of sampling that is about tools (MCP 2025-11-25,
// client/sampling § Sampling with Tools, SEP-1577). The tools are the asker's own:
// the model says which of them it wants called, the asker calls them, and asks
// again with the results. Whoever answers a request runs none of them.

// ToolChoice says whether the model may ask for tools.
type ToolChoice string

// The choices. The zero value means ToolsAuto.
const (
	ToolsAuto     ToolChoice = "auto"     // the model decides
	ToolsRequired ToolChoice = "required" // it asks for one at least
	ToolsNone     ToolChoice = "none"     // it asks for none
)

// ToolUse is a call of one of the tools of a [SampleRequest] that the model asks for.
type ToolUse struct {
	// ID names the use. It is unique in its message, and not empty.
	ID string
	// Name is that of the tool. A model can ask for one that there is not.
	Name string
	// Input is the JSON object of the arguments. Nil means {}.
	Input json.RawMessage
	// Metadata belongs to the model: an asker gives it back as it was, with the use
	// in the messages of its next request. May be nil.
	Metadata canister.Fields
}

// ToolResult is what came of a [ToolUse].
type ToolResult struct {
	// ToolUseID is the ID of the use.
	ToolUseID string
	Content   []canister.Content
	// Failed says that the tool failed; Content then says why.
	Failed bool
	// Metadata describes the result, for the model. May be nil.
	Metadata canister.Fields
}

// ErrNoModelTools is the cause of the failure of a request with tools, where the
// model that would answer it takes none.
var ErrNoModelTools = errors.New("the model of this call takes no tools")

// NoModelTools returns the failure that [ErrNoModelTools] is the cause of.
func NoModelTools() *Failure {
	return &Failure{Code: Unavailable, Message: "The tool wants to give the model tools, and the model that can be asked here takes none.", Cause: ErrNoModelTools}
}

// UsesTools reports whether the request has to do with tools, so that only a model
// that takes them can answer it: it has a list of tools, also an empty one, a
// choice, or uses of tools in its messages.
func (r *SampleRequest) UsesTools() bool {
	if r.Tools != nil || r.ToolChoice != "" {
		return true
	}
	for i := range r.Messages {
		if m := &r.Messages[i]; len(m.ToolUses) > 0 || len(m.ToolResults) > 0 {
			return true
		}
	}
	return false
}

// CheckTools returns what is wrong with the tools of the request and with their uses
// in its messages, as a [*Failure] with the code [InvalidArguments]; nil if nothing
// is. The rules are those of MCP 2025-11-25, client/sampling § Message Content
// Constraints: behind an assistant's message that uses tools comes one of the user
// with a result of each use, and with nothing else.
func (r *SampleRequest) CheckTools() error {
	names := make(map[string]bool, len(r.Tools))
	for i := range r.Tools {
		tool := &r.Tools[i]
		switch {
		case tool.Name == "":
			return Failf(InvalidArguments, "Tool %d for the model has no name.", i)
		case names[tool.Name]:
			return Failf(InvalidArguments, "Two tools for the model have the name %q.", tool.Name)
		case !isObject(tool.InputSchema):
			return Failf(InvalidArguments, "The input schema of the tool %q for the model is not a JSON object.", tool.Name)
		}
		names[tool.Name] = true
	}
	switch r.ToolChoice {
	case "", ToolsAuto, ToolsNone:
	case ToolsRequired:
		if len(r.Tools) == 0 {
			return Failf(InvalidArguments, "The model has to use a tool (tool choice %q), and there is none.", r.ToolChoice)
		}
	default:
		return Failf(InvalidArguments, "The tool choice is %q; it must be %q, %q or %q.", r.ToolChoice, ToolsAuto, ToolsRequired, ToolsNone)
	}
	open := map[string]bool{} // uses of the message before that have no result
	for i := range r.Messages {
		var err error
		if open, err = r.Messages[i].checkTools(i, open); err != nil {
			return err
		}
	}
	return missingResult(len(r.Messages)-1, open)
}

// checkTools checks message i behind one with the uses that are open, and returns
// those that it leaves open.
func (m *SampleMessage) checkTools(i int, open map[string]bool) (map[string]bool, error) {
	switch {
	case len(m.ToolUses) > 0 && m.Role != "assistant":
		return nil, Failf(InvalidArguments, "Message %d uses tools, and is not one of the assistant.", i)
	case len(m.ToolResults) > 0 && m.Role != "user":
		return nil, Failf(InvalidArguments, "Message %d has results of tools, and is not one of the user.", i)
	case len(m.ToolResults) > 0 && len(m.Content) > 0:
		return nil, Failf(InvalidArguments, "Message %d has results of tools, and other content beside them.", i)
	case len(m.ToolResults) == 0 && len(open) > 0:
		return nil, missingResult(i-1, open)
	}
	for _, result := range m.ToolResults {
		if !open[result.ToolUseID] {
			return nil, Failf(InvalidArguments, "Message %d has a result for the tool use %q, which the message before it does not have, or a second one.", i, result.ToolUseID)
		}
		delete(open, result.ToolUseID)
	}
	if err := missingResult(i-1, open); err != nil {
		return nil, err
	}
	for _, use := range m.ToolUses {
		switch {
		case use.ID == "" || open[use.ID]:
			return nil, Failf(InvalidArguments, "A tool use in message %d has no ID, or that of another one: %q.", i, use.ID)
		case len(use.Input) > 0 && !isObject(use.Input):
			return nil, Failf(InvalidArguments, "The input of the tool use %q in message %d is not a JSON object.", use.ID, i)
		}
		open[use.ID] = true
	}
	return open, nil
}

// missingResult is the error for message i if there is a use without a result.
func missingResult(i int, open map[string]bool) error {
	for id := range open {
		return Failf(InvalidArguments, "The tool use %q in message %d has no result in the message behind it.", id, i)
	}
	return nil
}

func isObject(text json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) && json.Valid(text)
}
