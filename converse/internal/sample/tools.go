// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/redaction"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// Names are the names of the tools in a request: the requester's names, by the names for
// the model.
type Names map[string]string

// Define returns the definition of a tool for the model, redacted by clean, and adds its
// name. It returns an error if another tool has the same name for the model.
func (n Names) Define(definition invoker.Definition, clean redaction.Func) (*invoker.Definition, error) {
	name := nameFor(definition.Name)
	if _, taken := n[name]; taken {
		return nil, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered the tool %q: another tool has the same name for the model.", textcut.Bytes(definition.Name, bounds.MaxQuoted))
	}
	n[name] = definition.Name
	definition.Name, definition.Title, definition.Description = name, clean.Text(definition.Title), clean.Text(definition.Description)
	definition.InputSchema, definition.OutputSchema = clean.Schema(definition.InputSchema), clean.Schema(definition.OutputSchema)
	definition.Metadata = clean.Fields(definition.Metadata)
	return &definition, nil
}

// nameFor returns the model's name for a tool of a requester, always the same: its own
// name, unless it is long or a model API would refuse it.
func nameFor(name string) string {
	const scope = "tool"
	if known := ensemble.NameFor(scope, name); known != scope+"__"+name {
		return known
	}
	return name
}

// uses returns the calls of tools in an answer. Without names calls are ignored.
func (n Names) uses(message canister.Assistant, invocations []canister.Invocation) (uses []invoker.ToolUse, err error) {
	if len(n) == 0 {
		return nil, nil
	}
	for _, call := range invocations {
		name, known := n[call.Name]
		if !known {
			name = call.Name // the requester can refuse it
		}
		input := json.RawMessage(strings.TrimSpace(call.Arguments))
		if !jsontext.IsObject(input) {
			if finish := message.Finish; finish == canister.FinishLength || finish == canister.FinishContentFilter {
				break // the call is cut off, and the finish of the answer says so
			}
			return nil, invoker.Failf(invoker.ExecutionFailed, "The model asked for the tool %q with arguments that are not a JSON object.", textcut.Bytes(name, bounds.MaxQuoted))
		}
		uses = append(uses, invoker.ToolUse{ID: call.CallID, Name: name, Input: input})
	}
	return uses, nil
}
