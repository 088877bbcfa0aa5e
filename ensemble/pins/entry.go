// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
)

// Entry is one tool of the file: pinned, pending, or both.
type Entry struct {
	Ensemble string `json:"ensemble"`
	Tool     string `json:"tool"` // the tool's own name
	// Pinned is when the definition was first seen, or accepted. Pinned, Fingerprint and
	// Definition are zero for a tool that is new since its ensemble was pinned, until it is
	// accepted.
	Pinned      time.Time  `json:"pinned,omitzero"`
	Fingerprint string     `json:"fingerprint,omitempty"` // "sha256:" and hexadecimal digits
	Definition  Definition `json:"definition,omitzero"`
	// Pending is the definition in the last list, if it differs from Definition; otherwise nil.
	Pending *Pending `json:"pending,omitempty"`
}

// IsNew reports whether the tool was never pinned, and waits to be accepted.
func (e *Entry) IsNew() bool { return e.Fingerprint == "" && e.Pending != nil }

// Pending is a definition that waits to be accepted.
type Pending struct {
	Seen        time.Time  `json:"seen"` // when it was first seen
	Fingerprint string     `json:"fingerprint"`
	Definition  Definition `json:"definition"`
}

// Change is one part of a definition that differs.
type Change struct {
	// Part is "title", "description", "input schema", "output schema" or
	// "hints".
	Part string
	// Before and After are texts for people, schemas and hints as indented JSON; empty
	// for a missing part. The server wrote them: remove control characters before
	// showing them on a terminal.
	Before, After string
}

// Changes returns the differences between the pinned and the pending definition, in the
// order of the names in [Change].Part; none if nothing is pending.
func (e *Entry) Changes() []Change {
	if e.Pending == nil {
		return nil
	}
	return e.Definition.changes(e.Pending.Definition)
}

func (d Definition) changes(to Definition) []Change {
	var changes []Change
	for _, c := range []Change{
		{"title", d.Title, to.Title},
		{"description", d.Description, to.Description},
		{"input schema", indented(d.InputSchema), indented(to.InputSchema)},
		{"output schema", indented(d.OutputSchema), indented(to.OutputSchema)},
		{"hints", indented(encode(d.Hints)), indented(encode(to.Hints))},
	} {
		if c.Before != c.After {
			changes = append(changes, c)
		}
	}
	return changes
}

func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// whatChanged names the parts that differ: "its title and description".
func whatChanged(changes []Change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = c.Part
	}
	if last := len(parts) - 1; last > 0 {
		parts = []string{strings.Join(parts[:last], ", "), parts[last]}
	}
	return "its " + strings.Join(parts, " and ")
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Ensemble, b.Ensemble), cmp.Compare(a.Tool, b.Tool))
}
