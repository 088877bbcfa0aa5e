// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/findcall"
)

// wrapped returns a history in which calls of tools that the model is not shown are calls of
// call_tool, as the model wrote them. It depends on the name of the tool alone, so that the
// same canister is always sent in the same form.
func (m *Model) wrapped(history []canister.Canister, v *view) []canister.Canister {
	wrapped := slices.Clone(history)
	for i, c := range wrapped {
		if invocation, ok := c.(canister.Invocation); ok && !v.shown[invocation.Name] {
			invocation.Arguments = findcall.Wrap(invocation.Name, invocation.Arguments)
			invocation.Name = m.call
			wrapped[i] = invocation
		}
	}
	return wrapped
}

// unwrapped returns the calls of a reply. A call of call_tool that names a tool is replaced by
// a call of this tool.
func (m *Model) unwrapped(calls []canister.Invocation) []canister.Invocation {
	unwrapped := slices.Clone(calls)
	for i := range unwrapped {
		if unwrapped[i].Name != m.call {
			continue
		}
		if name, arguments, ok := findcall.Unwrap(unwrapped[i].Arguments); ok && name != m.call {
			unwrapped[i].Name, unwrapped[i].Arguments = name, arguments
		}
	}
	return unwrapped
}
