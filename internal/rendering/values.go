// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/linediff"
)

// maxNesting bounds how deep a value is rendered as a tree; deeper values are JSON.
const maxNesting = 8

// values renders JSON for people: one line for each member, strings of several lines as
// lines, and pairs of an old and a new text as a comparison. All of the JSON is shown.
type values struct {
	style Style
	lines [][]span
	marks map[int]byte // of those lines that show a change, as in [Row]
}

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
	again bool // an earlier member has the same name
}

// members returns the members of an object in order, including repeated names; false if value is not an object.
func members(value json.RawMessage) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(value))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		m.name, _ = name.(string) // names of members are strings
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		m.again = seen[m.name]
		seen[m.name] = true
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err == nil
}

// object renders members, each indented.
func (v *values) object(all []member, indent, depth int) {
	for _, m := range all {
		if from, to, ok := editOf(all); ok {
			if m.name == from.name {
				v.edit(from, to, indent)
			}
			if m.name == from.name || m.name == to.name {
				continue
			}
		}
		v.value(label(m), m.value, indent, depth)
	}
}

// label returns the name of a member, in quotes if it is not a plain word: a sentence could
// pass for a hint.
func label(m member) string {
	name := m.name
	if name == "" || strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.$/", r)
	}) >= 0 {
		name = quote(name)
	}
	if m.again {
		name += " (given again)"
	}
	return name
}

// value renders a value after its name.
func (v *values) value(name string, value json.RawMessage, indent, depth int) {
	value = bytes.TrimSpace(value)
	if text, ok := stringOf(value); ok {
		v.text(name, text, indent)
		return
	}
	if all, ok := members(value); ok && len(all) > 0 && depth < maxNesting {
		v.named(name, "", indent)
		v.object(all, indent+2, depth+1)
		return
	}
	short := compact(value)
	var items []json.RawMessage
	if json.Unmarshal(value, &items) == nil && len(items) > 0 && depth < maxNesting &&
		(len(short) > v.style.width()-indent-len(name)-2 || bytes.ContainsAny(value, "{") || strings.Contains(short, `\n`)) {
		v.noted(name, fmt.Sprintf("(%s)", display.Count(len(items), "item")), indent)
		for i, item := range items {
			v.value(fmt.Sprint(i+1), item, indent+2, depth+1)
		}
		return
	}
	v.named(name, short, indent)
}

// named renders a name and a value without line breaks. If they do not fit on one line,
// the value begins on the next one.
func (v *values) named(name, value string, indent int) {
	indent = min(indent, v.style.width()/2)
	head := []span{{text: display.Text(name) + ":", ink: v.style.nameInk()}}
	width := v.style.width() - indent - 4
	if line := append(head, span{text: " " + value}); value != "" && columnsOfSpans(line) <= width+4 {
		head, value, width = line, "", width+4
	}
	for n, line := range chop(head, width) {
		if n > 0 {
			v.barred(line, indent)
			continue
		}
		v.lines = append(v.lines, append([]span{{text: strings.Repeat(" ", indent)}}, line...))
	}
	if value != "" {
		v.content(value, indent)
	}
}

// noted renders a name and a note about its value, without a bar.
func (v *values) noted(name, note string, indent int) {
	v.named(name, "", indent)
	indent = min(indent, v.style.width()/2)
	last := len(v.lines) - 1
	if line := append(v.lines[last], span{text: " " + note}); columnsOfSpans(line) <= v.style.width() {
		v.lines[last] = line
		return
	}
	for _, line := range wrap([]span{{text: note}}, v.style.width()-indent-2) {
		v.lines = append(v.lines, append([]span{{text: strings.Repeat(" ", indent+2)}}, line...))
	}
}

// content adds lines of content, with a new line wherever one is full: where a line ends
// says nothing about the content.
func (v *values) content(text string, indent int) {
	for _, line := range chop([]span{{text: text}}, v.style.width()-indent-4) {
		v.barred(line, indent)
	}
}

// barred adds a line that begins with a bar, so that it cannot pass for the name of a
// member.
func (v *values) barred(line []span, indent int) {
	head := []span{{text: strings.Repeat(" ", indent+2)}, {text: v.style.symbols().bar + " ", ink: faintInk}}
	v.lines = append(v.lines, append(head, line...))
}

// text renders a string after its name: on the same line, or as lines if it has several.
func (v *values) text(name, text string, indent int) {
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		v.named(name, readable(text), indent)
		return
	}
	body, ended := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	about := display.Count(len(lines), "line")
	if !ended {
		about += ", without a newline at the end"
	}
	v.noted(name, "("+about+")", indent)
	indent = min(indent, v.style.width()/2)
	for _, line := range lines {
		v.content(showReturns(line), indent)
	}
}

// edit renders a pair of texts as a comparison, which has all lines of both.
func (v *values) edit(from, to member, indent int) {
	before, _ := stringOf(from.value)
	after, _ := stringOf(to.value)
	indent = min(indent, v.style.width()/2)
	v.named(label(from)+" "+v.style.symbols().arrow+" "+label(to), "", indent)
	v.compared(strings.Repeat(" ", indent+2), linediff.All(before, after))
}

// edits are the names of members that hold an old and a new text, in lower case and
// without separators.
var edits = [][2]string{
	{"oldtext", "newtext"}, {"oldstring", "newstring"}, {"oldstr", "newstr"}, {"oldcontent", "newcontent"}, {"oldcode", "newcode"},
	{"old", "new"}, {"search", "replace"}, {"find", "replace"}, {"before", "after"}, {"original", "replacement"}, {"original", "modified"},
}

// editOf returns the members that hold an old and a new text. Each name must be there
// once.
func editOf(all []member) (from, to member, ok bool) {
	find := func(name string) (found member, n int) {
		for _, m := range all {
			if fold(m.name) == name {
				found = m
				n++
			}
		}
		return found, n
	}
	for _, pair := range edits {
		from, n := find(pair[0])
		to, k := find(pair[1])
		_, isText := stringOf(from.value)
		_, areTexts := stringOf(to.value)
		if n == 1 && k == 1 && isText && areTexts {
			return from, to, true
		}
	}
	return member{}, member{}, false
}

// fold returns a name in lower case and without separators.
func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// stringOf returns the string that a JSON value is. It is false for a string that cannot
// be decoded without loss.
func stringOf(value json.RawMessage) (text string, ok bool) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	if strings.ContainsRune(text, utf8.RuneError) && !bytes.ContainsRune(value, utf8.RuneError) || !utf8.Valid(value) {
		return "", false
	}
	return text, true
}

// readable returns a string of one line without quotes if nothing about it is unclear
// then, and otherwise as JSON.
func readable(text string) string {
	if text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\n\t\r") || json.Valid([]byte(text)) || strings.ContainsAny(text[:1], `"([{`) {
		return quote(text)
	}
	return showSpaces(display.Text(text))
}

// showSpaces makes spaces visible that look like others.
func showSpaces(text string) string {
	if strings.IndexFunc(text, isOddSpace) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isOddSpace(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isOddSpace(r rune) bool { return r != ' ' && unicode.Is(unicode.Zs, r) }

// quote returns a string as JSON in which invisible characters are escaped.
func quote(text string) string {
	quoted, _ := jsontext.Encode(text) // a string has a JSON form
	return showSpaces(display.EscapeJSON(string(quoted)))
}

// compact returns JSON on one line, with invisible characters escaped.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return display.Line(string(value))
	}
	return display.EscapeJSON(b.String())
}

// targets are the names of arguments that hold the target of a call, most telling first, in
// lower case and without separators.
var targets = []string{
	"command", "cmd", "script", "args", "cwd", "workdir", "workingdirectory",
	"path", "paths", "file", "files", "filename", "filepath", "absolutepath", "relativepath", "targetfile", "directory", "dir", "folder",
	"source", "src", "sourcepath", "from", "oldpath", "destination", "dest", "dst", "destinationpath", "to", "newpath", "target",
	"url", "uri", "urls", "uris", "href", "endpoint", "method", "host", "hostname", "port", "server", "address",
	"repo", "repository", "owner", "branch", "database", "table", "sql", "statement", "query",
	"recipient", "recipients", "channel", "name", "title", "id",
}

// isTarget reports whether an argument holds the target of a call. Values that are objects
// do not count.
func isTarget(m member) bool {
	value := bytes.TrimSpace(m.value)
	return slices.Contains(targets, fold(m.name)) && len(value) > 0 && value[0] != '{'
}

// byTarget divides members into targets of the call, sorted, and the rest.
func byTarget(all []member) (first, rest []member) {
	for _, m := range all {
		if isTarget(m) {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
	}
	slices.SortStableFunc(first, func(a, b member) int {
		return slices.Index(targets, fold(a.name)) - slices.Index(targets, fold(b.name))
	})
	return first, rest
}
