// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
)

// This file has the part of sampling that concerns tools (MCP 2025-11-25,
// client/sampling § Sampling with Tools, SEP-1577). The tools belong to the
// requester: the model asks for calls, the requester runs them and sends another
// request with the results. The program that answers a request runs none of them.

// ToolChoice controls whether the model may call tools.
type ToolChoice string

// The choices. The zero value means ToolsAuto.
const (
	ToolsAuto     ToolChoice = "auto"     // the model decides
	ToolsRequired ToolChoice = "required" // it must call at least one
	ToolsNone     ToolChoice = "none"     // it must not call any
)

// ToolUse is a call of one of the tools of a [SampleRequest], as requested by the
// model.
type ToolUse struct {
	// ID identifies the use. It is unique in its message and not empty.
	ID string
	// Name is the name of the tool. A model can ask for a tool that does not exist.
	Name string
	// Input is the JSON object of the arguments. Nil means {}.
	Input json.RawMessage
	// Metadata belongs to the model: the requester returns it unchanged, with the
	// use, in the messages of its next request. May be nil. A conversation sets none, and
	// ignores any; the models of gateways' clients can have some.
	Metadata canister.Fields
}

// ToolResult is the outcome of a [ToolUse].
type ToolResult struct {
	// ToolUseID is the ID of the use.
	ToolUseID string
	Content   []canister.Content
	// Failed means that the tool failed; Content then gives the reason.
	Failed bool
	// Metadata describes the result, for the model. May be nil.
	Metadata canister.Fields
}

// ErrNoModelTools is the cause of the failure of a request with tools if the
// model that would answer it does not take tools.
var ErrNoModelTools = errors.New("the model of this call does not support tools")

// NoModelTools returns the failure with the cause [ErrNoModelTools].
func NoModelTools() *Failure {
	return &Failure{Code: Unavailable, Message: "The tool wants to offer tools to the model, but the model that is available here does not support tools.", Cause: ErrNoModelTools}
}

// UsesTools reports whether the request involves tools, so that only a model that
// takes them can answer it: it has a list of tools, even an empty one, a tool
// choice, or tool uses or results in its messages.
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

// CheckTools checks the tools of the request and their uses in its messages. It
// returns a [*Failure] with the code [InvalidArguments], or nil if they are
// valid. The rules are from MCP 2025-11-25, client/sampling § Message Content
// Constraints: an assistant message with tool uses is followed by a user message
// that has a result for each use and nothing else.
func (r *SampleRequest) CheckTools() error {
	names := make(map[string]bool, len(r.Tools))
	for i := range r.Tools {
		tool := &r.Tools[i]
		switch {
		case tool.Name == "":
			return Failf(InvalidArguments, "Tool %d for the model has no name.", i)
		case names[tool.Name]:
			return Failf(InvalidArguments, "Two tools for the model have the name %q.", tool.Name)
		case !jsontext.IsObject(tool.InputSchema):
			return Failf(InvalidArguments, "The input schema of the tool %q for the model is not a JSON object.", tool.Name)
		}
		names[tool.Name] = true
	}
	switch r.ToolChoice {
	case "", ToolsAuto, ToolsNone:
	case ToolsRequired:
		if len(r.Tools) == 0 {
			return Failf(InvalidArguments, "The tool choice is %q, but the request has no tools.", r.ToolChoice)
		}
	default:
		return Failf(InvalidArguments, "The tool choice is %q; it must be %q, %q or %q.", r.ToolChoice, ToolsAuto, ToolsRequired, ToolsNone)
	}
	open := map[string]bool{} // uses in the previous message that have no result
	for i := range r.Messages {
		var err error
		if open, err = r.Messages[i].checkTools(i, open); err != nil {
			return err
		}
	}
	return missingResult(len(r.Messages)-1, open)
}

// checkTools checks message i, where open has the tool uses of the previous
// message, and returns its own tool uses.
func (m *SampleMessage) checkTools(i int, open map[string]bool) (map[string]bool, error) {
	switch {
	case len(m.ToolUses) > 0 && m.Role != "assistant":
		return nil, Failf(InvalidArguments, "Message %d uses tools, but its role is not assistant.", i)
	case len(m.ToolResults) > 0 && m.Role != "user":
		return nil, Failf(InvalidArguments, "Message %d has tool results, but its role is not user.", i)
	case len(m.ToolResults) > 0 && len(m.Content) > 0:
		return nil, Failf(InvalidArguments, "Message %d has tool results together with other content.", i)
	case len(m.ToolResults) == 0 && len(open) > 0:
		return nil, missingResult(i-1, open)
	}
	for _, result := range m.ToolResults {
		if !open[result.ToolUseID] {
			return nil, Failf(InvalidArguments, "Message %d has a result for the tool use %q, but the previous message has no such tool use, or it already has a result.", i, result.ToolUseID)
		}
		delete(open, result.ToolUseID)
	}
	if err := missingResult(i-1, open); err != nil {
		return nil, err
	}
	for _, use := range m.ToolUses {
		switch {
		case use.ID == "" || open[use.ID]:
			return nil, Failf(InvalidArguments, "A tool use in message %d has no ID, or the ID of another tool use: %q.", i, use.ID)
		case len(use.Input) > 0 && !jsontext.IsObject(use.Input):
			return nil, Failf(InvalidArguments, "The input of the tool use %q in message %d is not a JSON object.", use.ID, i)
		}
		open[use.ID] = true
	}
	return open, nil
}

// missingResult returns an error for message i if open has a use, which lacks a
// result.
func missingResult(i int, open map[string]bool) error {
	for id := range open {
		return Failf(InvalidArguments, "The tool use %q in message %d has no result in the next message.", id, i)
	}
	return nil
}
