// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/consort-go/consort/canister"
)

// compactionKey is the member of a document's metadata that says that the document
// replaces the canisters before it, or that results before it are cut.
const compactionKey = "io.github.consort-go/compaction"

// mark is the value of that member.
type mark struct {
	// Through is the ID of the last canister that it covers.
	Through string `json:"through"`
	// Trim is the size in bytes that results are cut to; 0 if the document replaces
	// everything up to Through.
	Trim int `json:"trim,omitzero"`
	// Tokens is the approximate size of a request with it.
	Tokens int64 `json:"tokens"`
	// Place is the index of Through in the log, and Instructions are the indexes of the
	// Supervisors before it: they make it unnecessary to read the log from its
	// beginning. Nil Instructions mean a cut, or a mark of a program that did not write
	// them.
	Place        int   `json:"place,omitzero"`
	Instructions []int `json:"instructions,omitzero"`
}

// markOf reads the mark of a canister; ok is false if it has none, or an invalid one.
func markOf(c canister.Canister) (m mark, ok bool) {
	document, ok := c.(canister.Document)
	if !ok {
		return mark{}, false
	}
	text, ok := document.Metadata[compactionKey]
	const most = 1 << 40
	if !ok || json.Unmarshal(text, &m) != nil || m.Through == "" || m.Trim < 0 || m.Tokens < 0 || m.Tokens > most || m.Place < 0 || !arePlaces(m.Instructions) {
		return mark{}, false
	}
	return m, true
}

// arePlaces reports whether numbers are increasing, distinct indexes in a log.
func arePlaces(numbers []int) bool {
	least := 0
	for _, n := range numbers {
		if n < least {
			return false
		}
		least = n + 1
	}
	return true
}

// unmarked returns a canister without the metadata that only a compaction may set: a
// canister from outside must not replace messages or instructions.
func unmarked(c canister.Canister) canister.Canister {
	document, ok := c.(canister.Document)
	if !ok || document.Metadata[compactionKey] == nil && document.Metadata[sampledKey] == nil && document.Metadata[instructionsKey] == nil {
		return c
	}
	document.Metadata = maps.Clone(document.Metadata) // it is the caller's
	delete(document.Metadata, compactionKey)
	delete(document.Metadata, sampledKey)
	delete(document.Metadata, instructionsKey)
	return document
}

// marks are the indexes of the effective marks of a history; -1 means none.
type marks struct {
	summary int // the document that replaces canisters before it
	through int // the last canister that it replaces
	user    int // the user's message among those, which requests still contain
	trim    int // results up to this index are cut
	bytes   int // to this many bytes
}

// readMarks reads the marks from the end, as far back as the newest summary requires. A
// mark that names nothing before it, or that would separate invocations from their
// results, is ignored.
func readMarks(history []canister.Canister) marks {
	m := marks{summary: -1, through: -1, user: -1, trim: -1}
	for i := len(history) - 1; i >= 0 && m.summary < 0; i-- {
		mark, ok := markOf(history[i])
		if !ok || mark.Trim > 0 {
			continue
		}
		if place := m.resolve(history[:i], mark); place >= 0 {
			m.summary, m.through = i, place
			if user := lastUser(history[:i]); user <= place {
				m.user = user
			}
		}
	}
	for i := len(history) - 1; i > m.through && m.trim < 0; i-- {
		mark, ok := markOf(history[i])
		if !ok || mark.Trim == 0 {
			continue
		}
		if place := m.resolve(history[:i], mark); place > m.through { // the model does not receive earlier canisters
			m.trim, m.bytes = place, mark.Trim
		}
	}
	return m
}

// resolve returns the index of the canister that a mark after a history names, or -1.
func (marks) resolve(history []canister.Canister, m mark) int {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Header().ID == m.Through {
			if i+1 < len(history) && !opens(history[i+1]) {
				return -1
			}
			return i
		}
	}
	return -1
}

// opens reports whether a canister is a message that does not belong to an earlier one,
// so that a history can be cut before it.
func opens(c canister.Canister) bool {
	switch c.(type) {
	case canister.User, canister.Assistant, canister.Supervisor, canister.Document:
		return true
	}
	return false
}

// lastUser returns the index of the last message of the user, or -1.
func lastUser(history []canister.Canister) int {
	for i := len(history) - 1; i >= 0; i-- {
		if _, ok := history[i].(canister.User); ok {
			return i
		}
	}
	return -1
}

// tell appends a canister that is not summarised as the model receives it: itself, its
// cut version, or nothing.
func (m marks) tell(told []canister.Canister, place int, c canister.Canister) []canister.Canister {
	if mark, ok := markOf(c); ok && (mark.Trim > 0 || place <= m.summary) {
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
// another identity: see [Binder].
func trimmed(result canister.Result, bytes int) canister.Result {
	total := 0
	for _, c := range result.Content {
		total += size(c)
	}
	if total <= bytes+trimWorth {
		return result
	}
	result.ID += "-cut" + strconv.Itoa(bytes)
	result.Content = append(bound(result.Content, bytes, spiller{}),
		canister.Text("[This result is an old one and was cut. Call the tool again if what is left out matters.]"))
	return result
}

// view is a growing history as a model receives it: [canister.Messages], shortened as
// the marks say. Each view is a prefix of the next one, until there is a new mark.
type view struct {
	seen int // how many canisters of the history it covers
	told []canister.Canister
}

// of returns the view of a history without open invocations. Instructions of servers
// that were added right after a message of the user are placed before it, so that the
// model answers the message. The cost depends on the canisters added since the last
// call, or on the whole view after a new mark.
func (v *view) of(history []canister.Canister) []canister.Canister {
	if v.seen > len(history) {
		*v = view{}
	}
	m := marks{summary: -1, through: -1, user: -1, trim: -1}
	for _, c := range history[v.seen:] {
		if _, marked := markOf(c); marked {
			m = readMarks(history)
			v.seen, v.told = m.through+1, m.front(history)
			break
		}
	}
	var added []canister.Canister
	for i, c := range history[v.seen:] {
		if i == 0 && isInstructions(c) { // they may be placed before the last message of the view
			if last := len(v.told) - 1; last >= 0 && v.told[last].Kind() == canister.KindUser {
				v.told, added = slices.Clone(v.told[:last]), append(added, v.told[last])
			}
		}
		added = m.tell(added, v.seen+i, c)
		if last := len(added) - 1; last > 0 && isInstructions(c) && added[last-1].Kind() == canister.KindUser {
			added[last-1], added[last] = added[last], added[last-1]
		}
	}
	v.told = append(v.told, canister.Messages(added)...)
	v.seen = len(history)
	return v.told[:len(v.told):len(v.told)]
}

// front returns the part of the view that replaces the summarised canisters: the
// instructions, which stay in front, the summary, and the user's message that the work
// is about.
func (m marks) front(history []canister.Canister) []canister.Canister {
	if m.summary < 0 {
		return nil
	}
	var told []canister.Canister
	for _, c := range history[:m.through+1] {
		if supervisor, ok := c.(canister.Supervisor); ok {
			told = append(told, supervisor)
		}
	}
	told = append(told, history[m.summary])
	if m.user >= 0 {
		told = append(told, history[m.user])
	}
	return told
}
