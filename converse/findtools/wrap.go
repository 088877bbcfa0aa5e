// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/internal/findcall"
)

// sentHistory is the history of the last request.
type sentHistory struct {
	of, wrapped []canister.Canister
	shown       map[string]bool
	client      map[string]bool // the tools that the client has brought so far, by name
}

// holds reports whether a history begins with the one of the last request: it is the same
// array, which conversations only append to, and the same tools are shown.
func (p *sentHistory) holds(history []canister.Canister, shown map[string]bool) bool {
	return p != nil && len(p.of) > 0 && len(history) >= len(p.of) && &history[0] == &p.of[0] && maps.Equal(p.shown, shown)
}

// wrapped returns a history in which calls of tools that the model is not shown are calls of
// call_tool, as the model wrote them. A call of a tool of the client stays as it is. The form
// depends on the name of the tool and on the canisters before, so that the same canister is
// always sent in the same form. A conversation's history is not copied for each request: only
// its new canisters are.
func (m *Model) wrapped(history []canister.Canister, v *view) []canister.Canister {
	var before *sentHistory
	if m.sent != nil {
		before = m.sent.Swap(nil) // a concurrent request copies the whole
	}
	if !before.holds(history, v.shown) {
		before = &sentHistory{client: map[string]bool{}}
	}
	wrapped, client := before.wrapped, before.client
	for _, c := range history[len(wrapped):] {
		if user, ok := c.(canister.User); ok {
			for _, definition := range clienttools.Of(user) {
				client[definition.Name] = true
			}
		}
		if invocation, ok := c.(canister.Invocation); ok && !v.shown[invocation.Name] && !client[invocation.Name] {
			invocation.Arguments = findcall.Wrap(invocation.Name, invocation.Arguments)
			invocation.Name = m.call
			c = invocation
		}
		wrapped = append(wrapped, c)
	}
	if m.sent != nil {
		m.sent.Store(&sentHistory{of: history, wrapped: wrapped, shown: v.shown, client: client})
	}
	return slices.Clip(wrapped)
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
