// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
)

// wrapped returns a history in which calls of tools that the model is not shown are calls of
// call_tool, as the model wrote them. It depends on the name of the tool alone, so that the
// same canister is always sent in the same form.
func (m *Model) wrapped(history []canister.Canister, v *view) []canister.Canister {
	wrapped := slices.Clone(history)
	for i, c := range wrapped {
		if invocation, ok := c.(canister.Invocation); ok && !v.shown[invocation.Name] {
			invocation.Arguments = wrap(invocation.Name, invocation.Arguments)
			invocation.Name = m.call
			wrapped[i] = invocation
		}
	}
	return wrapped
}

// wrap returns the arguments of call_tool for a call. It encodes arguments as a string if they
// are not a JSON object.
func wrap(name, arguments string) string {
	raw := json.RawMessage(arguments)
	var object map[string]json.RawMessage
	switch {
	case strings.TrimSpace(arguments) == "":
		raw = json.RawMessage("{}")
	case json.Unmarshal(raw, &object) != nil || object == nil:
		raw, _ = json.Marshal(arguments)
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(callArguments{name, raw}) != nil {
		return arguments // cannot happen: both are valid
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unwrapped returns the calls of a reply. A call of call_tool that names a tool is replaced by
// a call of this tool.
func (m *Model) unwrapped(calls []canister.Invocation) []canister.Invocation {
	unwrapped := slices.Clone(calls)
	for i := range unwrapped {
		if unwrapped[i].Name != m.call {
			continue
		}
		if name, arguments, ok := unwrap(unwrapped[i].Arguments); ok && name != m.call {
			unwrapped[i].Name, unwrapped[i].Arguments = name, arguments
		}
	}
	return unwrapped
}

// unwrap returns the name and the arguments of the tool that is called through call_tool.
// Some models write the arguments as a string that contains JSON.
func unwrap(text string) (name, arguments string, ok bool) {
	var call callArguments
	if json.Unmarshal([]byte(text), &call) != nil || call.Name == "" {
		return "", "", false
	}
	if json.Unmarshal(call.Arguments, &arguments) == nil {
		return call.Name, arguments, true // null gives an empty string
	}
	return call.Name, string(call.Arguments), true
}
