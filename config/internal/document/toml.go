// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"strconv"
	"strings"

	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML reads a TOML document. It returns nil if the text cannot be read to the end,
// and in either case what is wrong with it.
func TOML(src *Source) (*Node, []Fault) {
	t := &tomlReader{source: src, root: &Node{Value: NewTable()}, headers: map[*Node]bool{}}
	t.current = t.root
	t.parser.Reset(src.Data)
	for t.parser.NextExpression() {
		t.expression(t.parser.Expression())
	}
	whole := t.parser.Error() == nil
	// The decoder decides whether the text is valid TOML: it applies rules about tables
	// and dates that the parser does not. It reports only one error, so it runs only if
	// nothing else was found or the parser failed.
	if len(t.faults) == 0 || !whole {
		t.verdict()
	}
	if !whole {
		return nil, t.faults
	}
	return t.root, t.faults
}

// tomlReader turns the expressions of a document into a tree.
type tomlReader struct {
	source  *Source
	faults  []Fault
	parser  unstable.Parser
	root    *Node
	current *Node          // the table of the last header
	headers map[*Node]bool // tables that had a header of their own
}

func (t *tomlReader) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		t.header(e)
	case unstable.ArrayTable:
		t.listHeader(e)
	case unstable.KeyValue:
		t.keyValue(t.current, e)
	}
}

// header opens the table of a [header].
func (t *tomlReader) header(e *unstable.Node) {
	parent, last := t.descend(t.root, e.Key())
	if last == nil {
		t.current = &Node{Value: NewTable()} // for values that have no place
		return
	}
	last.Value = NewTable()
	if earlier := parent.put(last); earlier != nil {
		if _, ok := earlier.Value.(*Table); !ok || t.headers[earlier] {
			t.duplicate(parent, last, earlier)
			t.current = &Node{Parent: parent, Key: last.Key, Value: NewTable()}
			return
		}
		last = earlier
	}
	t.headers[last] = true
	t.current = last
}

// listHeader opens another table of a [[header]].
func (t *tomlReader) listHeader(e *unstable.Node) {
	parent, last := t.descend(t.root, e.Key())
	element := &Node{Value: NewTable()}
	t.current = element
	if last == nil {
		return
	}
	element.At, element.KeyAt = last.At, last.At
	last.Value = List{}
	if earlier := parent.put(last); earlier != nil {
		if _, ok := earlier.Value.(List); !ok {
			t.duplicate(parent, last, earlier)
			return
		}
		last = earlier
	}
	last.push(element)
}

// keyValue puts one key and its value into the table in.
func (t *tomlReader) keyValue(in *Node, e *unstable.Node) {
	parent, last := t.descend(in, e.Key())
	if last == nil {
		return
	}
	if earlier := parent.put(last); earlier != nil {
		t.duplicate(parent, last, earlier)
		return
	}
	t.fill(last, e.Value(), t.afterKey(e))
}

// descend follows a dotted key from in and creates the tables on its way. It returns the
// last table, and an empty node for the last part of the key. The node is nil if a value
// on the way is not a table.
func (t *tomlReader) descend(in *Node, keys unstable.Iterator) (parent, last *Node) {
	parent = in
	for keys.Next() {
		part := keys.Node()
		at := int(part.Raw.Offset)
		child := &Node{Parent: parent, Key: string(part.Data), KeyAt: at, At: at}
		if keys.IsLast() {
			return parent, child
		}
		child.Value = NewTable()
		if t.tooDeep(child) {
			return nil, nil
		}
		if earlier := parent.put(child); earlier != nil {
			child = earlier
		}
		if elements, ok := child.Value.(List); ok && len(elements) > 0 {
			child = elements[len(elements)-1] // a table of the last [[header]]
		}
		if _, ok := child.Value.(*Table); !ok {
			t.report(child, at, "this is not a table, so nothing can be set in it")
			return nil, nil
		}
		parent = child
	}
	return nil, nil
}

// fill sets the value of n to v, whose text starts at or after the offset at.
func (t *tomlReader) fill(n *Node, v *unstable.Node, at int) {
	n.At = at
	if v.Raw.Length > 0 {
		n.At = int(v.Raw.Offset)
	}
	switch v.Kind {
	case unstable.String:
		n.Value = string(v.Data)
	case unstable.Bool:
		n.Value = string(v.Data) == "true"
	case unstable.Integer:
		n.Value = t.integer(n, string(v.Data))
	case unstable.Float:
		n.Value = t.float(n, string(v.Data))
	case unstable.Array:
		n.Value = List{}
		if t.tooDeep(n) {
			return
		}
		for it := v.Children(); it.Next(); {
			element := &Node{KeyAt: n.At}
			n.push(element)
			t.fill(element, it.Node(), n.At)
			element.KeyAt = element.At
		}
	case unstable.InlineTable:
		n.Value = NewTable()
		if t.tooDeep(n) {
			return
		}
		for it := v.Children(); it.Next(); {
			t.keyValue(n, it.Node())
		}
	default:
		n.Value = Moment(v.Data)
	}
}

// tooDeep reports whether n is nested more than maxDepth levels deep, and reports it
// if so.
func (t *tomlReader) tooDeep(n *Node) bool {
	depth := 0
	for p := n.Parent; p != nil; p = p.Parent {
		depth++
	}
	if depth <= maxDepth {
		return false
	}
	t.report(n, n.At, "nested more than %d levels deep", maxDepth)
	return true
}

func (t *tomlReader) integer(n *Node, text string) int64 {
	i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	if err != nil {
		t.report(n, n.At, "expected an integer of at most 64 bits")
	}
	return i
}

func (t *tomlReader) float(n *Node, text string) float64 {
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil {
		t.report(n, n.At, "expected a float of at most 64 bits")
		return 0
	}
	return f
}

// afterKey returns the offset at which the value of a key begins.
func (t *tomlReader) afterKey(e *unstable.Node) int {
	at := int(e.Raw.Offset)
	for keys := e.Key(); keys.Next(); {
		at = int(keys.Node().Raw.Offset + keys.Node().Raw.Length)
	}
	for at < len(t.source.Data)-1 && strings.IndexByte(" \t=", t.source.Data[at]) >= 0 {
		at++
	}
	return at
}

func (t *tomlReader) duplicate(parent, again, earlier *Node) {
	line, _ := t.source.Position(earlier.KeyAt)
	again.Parent = parent
	t.report(again, again.KeyAt, "defined before, on line %d; remove one of the two", line)
}

func (t *tomlReader) report(n *Node, at int, format string, args ...any) {
	t.faults = append(t.faults, t.source.fault(at, n.Path(), format, args...))
}

// verdict adds the error of the decoder, unless something on the same line was reported
// already.
func (t *tomlReader) verdict() {
	var all any
	err := toml.Unmarshal(t.source.Data, &all)
	if err == nil {
		return
	}
	at := 0
	message := strings.TrimPrefix(err.Error(), "toml: ")
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		at = plaintext.Offset(t.source.Data, line, column)
	}
	found := t.source.fault(at, plaintext.TOMLKey(t.source.Data, at), "not valid TOML: %s", plaintext.WithAdvice(message))
	for _, other := range t.faults {
		if other.Line == found.Line {
			return
		}
	}
	t.faults = append(t.faults, found)
}
