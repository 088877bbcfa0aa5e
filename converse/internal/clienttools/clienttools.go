// SPDX-License-Identifier: Apache-2.0

// Package clienttools has the tools that the client of a conversation brings with a message and
// executes itself. Their definitions are metadata of the message, and a call is a wait whose
// answer has the result. So every process that has the log can carry the turn on.
package clienttools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/invoker"
)

// callKey is the member of a wait's metadata that marks the call of a client's tool.
const callKey = "io.github.consort-go/client-call"

// The limits of the tools of one message.
const (
	MaxTools = 64
	maxSize  = 256 << 10 // of the definitions in their JSON form, in bytes
	maxName  = 64
)

// Ensemble stands for the client in audits and questions.
const Ensemble = "(client)"

// Tool is a tool of a client.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // the schema of the arguments
}

func (t *Tool) definition() *invoker.Definition {
	return &invoker.Definition{Name: t.Name, Description: t.Description, InputSchema: t.Parameters}
}

// Check returns why tools cannot be offered, and the index of the first such tool.
func Check(tools []Tool) (index int, err error) {
	if len(tools) > MaxTools {
		return MaxTools, fmt.Errorf("there are %d tools, and at most %d may be sent", len(tools), MaxTools)
	}
	seen, size := map[string]bool{}, 0
	for i, tool := range tools {
		form, _ := json.Marshal(tool) // fails only for parameters that Raw refuses
		size += len(form)
		switch {
		case !isName(tool.Name):
			return i, fmt.Errorf("the name %.80q may not be used: a name has 1 to %d letters, digits, '-' and '_', "+
				"and no two '_' in a row, which the names of the server's tools have", tool.Name, maxName)
		case !utf8.Valid(tool.Parameters):
			return i, fmt.Errorf("the parameters of the tool %q are not valid UTF-8", tool.Name)
		case seen[tool.Name]:
			return i, fmt.Errorf("two tools have the name %q", tool.Name)
		case size > maxSize:
			return i, fmt.Errorf("with the tool %q, the definitions have more than %d bytes", tool.Name, maxSize)
		}
		seen[tool.Name] = true
		if _, err := invoker.Raw(*tool.definition(), notCalled, nil); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// isName reports whether a client's tool may have a name. The names of all tools of ensembles
// contain "__", so that none has the name of a client's, also when it is added later.
func isName(name string) bool {
	isOther := func(r rune) bool {
		isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !isLetter && (r < '0' || '9' < r) && r != '_' && r != '-'
	}
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, isOther) && !strings.Contains(name, "__")
}

func notCalled(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }

// With returns the metadata of a message that brings tools.
func With(metadata canister.Fields, tools []Tool) canister.Fields {
	if len(tools) == 0 {
		return metadata
	}
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = canister.Fields{}
	}
	metadata[notes.ClientToolsKey], _ = json.Marshal(tools) // Check has parsed the schemas
	return metadata
}

// Of returns the tools that a message brings. Invalid ones are left out.
func Of(message canister.Canister) []*invoker.Definition {
	text := message.Header().Metadata[notes.ClientToolsKey]
	if text == nil || message.Kind() != canister.KindUser {
		return nil
	}
	var tools []Tool
	if json.Unmarshal(text, &tools) != nil {
		return nil
	}
	var all []*invoker.Definition
	for _, tool := range tools {
		if isName(tool.Name) && len(all) < MaxTools {
			all = append(all, tool.definition())
		}
	}
	return all
}

// Mark returns the metadata of the wait of a call.
func Mark() canister.Fields { return canister.Fields{callKey: json.RawMessage("true")} }

// IsCall reports whether a wait is the call of a client's tool.
func IsCall(wait canister.Wait) bool {
	return wait.For == canister.WaitElicitation && wait.Metadata[callKey] != nil
}
