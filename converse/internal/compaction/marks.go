// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/notes"
)

// InstructionsKey marks a document with the servers' instructions for the use of their
// tools.
const InstructionsKey = "io.github.consort-go/instructions"

// IsInstructions reports whether a canister has the instructions of servers.
func IsInstructions(c canister.Canister) bool {
	return c.Kind() == canister.KindDocument && c.Header().Metadata[InstructionsKey] != nil
}

// Mark is the value of [notes.CompactionKey].
type Mark struct {
	// Through is the ID of the last canister that it covers.
	Through string `json:"through"`
	// Trim is the size in bytes that results are cut to; 0 if the document replaces
	// everything up to Through.
	Trim int `json:"trim,omitzero"`
	// Tokens is the approximate size of a request with it.
	Tokens int64 `json:"tokens"`
	// Index is the index of Through in the log, and Instructions are the indexes of the
	// Supervisors before it: they make it unnecessary to read the log from its
	// beginning. Nil Instructions mean a cut, or a mark of a program that did not write
	// them.
	Index        int   `json:"place,omitzero"`
	Instructions []int `json:"instructions,omitzero"`
}

// MarkOf reads the mark of a canister; ok is false if it has none, or an invalid one.
func MarkOf(c canister.Canister) (Mark, bool) {
	document, ok := c.(canister.Document)
	if !ok {
		return Mark{}, false
	}
	return markIn(document)
}

func markIn(document canister.Document) (m Mark, ok bool) {
	text, ok := document.Metadata[notes.CompactionKey]
	const most = 1 << 40
	if !ok || json.Unmarshal(text, &m) != nil || m.Through == "" || m.Trim < 0 || m.Tokens < 0 || m.Tokens > most || m.Index < 0 || !areIndexes(m.Instructions) {
		return Mark{}, false
	}
	return m, true
}

// Since reports whether a history has a mark after the canister with an ID.
func Since(history []canister.Canister, id string) bool {
	for _, c := range slices.Backward(history) {
		if c.Header().ID == id {
			return false
		}
		if _, ok := MarkOf(c); ok {
			return true
		}
	}
	return false
}

// areIndexes reports whether numbers are increasing, distinct indexes in a log.
func areIndexes(numbers []int) bool {
	least := 0
	for _, n := range numbers {
		if n < least {
			return false
		}
		least = n + 1
	}
	return true
}

// MarkedBy adds a mark to metadata and returns them.
func MarkedBy(m Mark, metadata canister.Fields) canister.Fields {
	if metadata == nil {
		metadata = canister.Fields{}
	}
	metadata[notes.CompactionKey], _ = json.Marshal(m) // strings and numbers have a JSON form
	return metadata
}

// Marks are the indexes of the effective marks of a history; -1 means none.
type Marks struct {
	Summary int // the document that replaces canisters before it
	Through int // the last canister that it replaces
	User    int // the user's message among those, which requests still contain
	trim    int // results up to this index are cut
	bytes   int // to this many bytes
}

// ReadMarks reads the marks from the end, as far back as the newest summary requires. A
// mark that names nothing before it, or that would separate invocations from their
// results, is ignored.
func ReadMarks(history []canister.Canister) Marks {
	m := Marks{Summary: -1, Through: -1, User: -1, trim: -1}
	for i := len(history) - 1; i >= 0 && m.Summary < 0; i-- {
		mark, ok := MarkOf(history[i])
		if !ok || mark.Trim > 0 {
			continue
		}
		if place := mark.In(history[:i]); place >= 0 {
			m.Summary, m.Through = i, place
			if user := LastUser(history[:i]); user <= place {
				m.User = user
			}
		}
	}
	for i := len(history) - 1; i > m.Through && m.trim < 0; i-- {
		mark, ok := MarkOf(history[i])
		if !ok || mark.Trim == 0 {
			continue
		}
		if place := mark.In(history[:i]); place > m.Through { // the model does not receive earlier canisters
			m.trim, m.bytes = place, mark.Trim
		}
	}
	return m
}

// In returns the index of the canister that the mark, which follows a history, names, or -1.
func (m Mark) In(history []canister.Canister) int {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Header().ID == m.Through {
			if i+1 < len(history) && !Opens(history[i+1]) {
				return -1
			}
			return i
		}
	}
	return -1
}

// Opens reports whether a canister is a message that does not belong to an earlier one,
// so that a history can be cut before it.
func Opens(c canister.Canister) bool {
	switch c.(type) {
	case canister.User, canister.Assistant, canister.Supervisor, canister.Document:
		return true
	}
	return false
}

// LastUser returns the index of the last message of the user, or -1.
func LastUser(history []canister.Canister) int {
	for i := len(history) - 1; i >= 0; i-- {
		if _, ok := history[i].(canister.User); ok {
			return i
		}
	}
	return -1
}

// LastUserID returns the ID of the last message of the user, or "".
func LastUserID(history []canister.Canister) string {
	if i := LastUser(history); i >= 0 {
		return history[i].Header().ID
	}
	return ""
}

// tell appends a canister that is not summarised as the model receives it: itself, its
// cut version, or nothing.
func (m Marks) tell(told []canister.Canister, place int, c canister.Canister) []canister.Canister {
	if mark, ok := MarkOf(c); ok && (mark.Trim > 0 || place <= m.Summary) {
		return told
	}
	if result, ok := c.(canister.Result); ok && place <= m.trim {
		return append(told, trimmed(result, m.bytes))
	}
	return append(told, c)
}

// trimWorth is how many bytes a result must exceed the limit by to be cut, because the
// lines that report a cut take some.
const trimWorth = 512

// trimmed returns an old result as the model receives it. A result that is cut has
// another identity: see converse.Binder.
func trimmed(result canister.Result, bytes int) canister.Result {
	total := 0
	for _, c := range result.Content {
		total += bounds.Size(c)
	}
	if total <= bytes+trimWorth {
		return result
	}
	result.ID += "-cut" + strconv.Itoa(bytes)
	result.Content = append(bounds.Contents(result.Content, bytes, nil),
		canister.Text("[This old result was cut. Call the tool again if the omitted part matters.]"))
	return result
}

// Unmarked returns a canister without the metadata that only a compaction may set: a
// canister from outside must not replace messages or instructions.
func Unmarked(c canister.Canister) canister.Canister {
	document, ok := c.(canister.Document)
	if !ok || document.Metadata[notes.CompactionKey] == nil && document.Metadata[notes.SampledKey] == nil && document.Metadata[InstructionsKey] == nil {
		return c
	}
	document.Metadata = maps.Clone(document.Metadata) // it is the caller's
	delete(document.Metadata, notes.CompactionKey)
	delete(document.Metadata, notes.SampledKey)
	delete(document.Metadata, InstructionsKey)
	return document
}
