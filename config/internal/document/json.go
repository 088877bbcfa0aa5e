// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/internal/jsonc"
)

// JSON reads a JSON document, which may have comments and trailing commas. It returns
// nil if the text is not a valid document, and in either case what is wrong with it.
func JSON(src *Source) (*Node, []Fault) {
	data := jsonc.Plain(src.Data)
	j := &jsonReader{source: src, data: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	j.decoder.UseNumber()
	var text json.RawMessage
	if err := json.Unmarshal(data, &text); err != nil {
		at := len(src.Data)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = int(syntax.Offset) - 1 // Offset counts the bytes read
		}
		return nil, []Fault{src.fault(at, plaintext.JSONKey(data), "not valid JSON: %s", plaintext.WithAdvice(err.Error()))}
	}
	root := &Node{}
	if !j.fill(root, 0) {
		return nil, j.faults
	}
	return root, j.faults
}

// jsonReader turns the tokens of a document, known to be valid, into a tree.
type jsonReader struct {
	source  *Source
	data    []byte // without comments
	faults  []Fault
	decoder *json.Decoder
}

// fill reads one value into n. It returns false if it cannot continue.
func (j *jsonReader) fill(n *Node, depth int) bool {
	token, at := j.next()
	n.At = at
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			j.report(n, at, "nested more than %d levels deep", maxDepth)
			return false
		}
		if token == '{' {
			return j.object(n, depth+1)
		}
		return j.array(n, depth+1)
	case json.Number:
		n.Value = j.number(n, token.String())
	case nil:
		n.Value = nil
	default:
		n.Value = token // a string or a bool
	}
	return true
}

func (j *jsonReader) object(n *Node, depth int) bool {
	n.Value = NewTable()
	for j.decoder.More() {
		key, at := j.next()
		name, _ := key.(string)
		child := &Node{Parent: n, Key: name, KeyAt: at}
		if earlier := n.put(child); earlier != nil {
			line, _ := j.source.Position(earlier.KeyAt)
			j.report(child, at, "defined before, on line %d; remove one of the two", line)
		}
		if !j.fill(child, depth) {
			return false
		}
	}
	j.next() // the closing brace
	return true
}

func (j *jsonReader) array(n *Node, depth int) bool {
	n.Value = List{}
	for j.decoder.More() {
		child := &Node{}
		n.push(child)
		if !j.fill(child, depth) {
			return false
		}
		child.KeyAt = child.At
	}
	j.next() // the closing bracket
	return true
}

func (j *jsonReader) number(n *Node, text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		j.report(n, n.At, "expected a number of at most 64 bits")
		return nil
	}
	return f
}

// next returns the next token and the offset at which it begins.
func (j *jsonReader) next() (json.Token, int) {
	at := int(j.decoder.InputOffset())
	for at < len(j.data)-1 && strings.IndexByte(" \t\r\n,:", j.data[at]) >= 0 {
		at++
	}
	token, err := j.decoder.Token()
	if err != nil {
		return nil, at // impossible: the text is valid
	}
	return token, at
}

func (j *jsonReader) report(n *Node, at int, format string, args ...any) {
	key := ""
	if n != nil {
		key = n.Path()
	}
	j.faults = append(j.faults, j.source.fault(at, key, format, args...))
}
