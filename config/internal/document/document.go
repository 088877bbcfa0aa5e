// SPDX-License-Identifier: Apache-2.0

// Package document reads TOML and JSON as a tree whose values know their place in the text.
package document

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/config/internal/plaintext"
)

// maxDepth limits how deep tables and lists are nested.
const maxDepth = 64

// Source is the text of one file, or a flag of the command line.
type Source struct {
	Name string
	Data []byte // of a file
	Flag bool   // Name is a flag, without lines
}

// Of returns the source of n: the flag that sets it, or else the file s.
func (s *Source) Of(n *Node) *Source {
	for ; n != nil; n = n.Parent {
		if n.Source != nil {
			return n.Source
		}
	}
	return s
}

// Where returns the place of n as FILE:LINE, or the flag that sets it.
func (s *Source) Where(n *Node) string {
	of := s.Of(n)
	line, _ := of.Position(n.KeyAt)
	if line == 0 {
		return of.Name
	}
	return fmt.Sprintf("%s:%d", of.Name, line)
}

// Folder returns the folder where relative paths start: the file's, or for a flag the
// working directory.
func (s *Source) Folder() string {
	if s.Flag {
		return "."
	}
	return filepath.Dir(s.Name)
}

// Position returns the line and the column of an offset, both counted from 1, or 0 for a
// flag. An offset inside a character counts as the start of that character.
func (s *Source) Position(offset int) (line, column int) {
	if s.Flag {
		return 0, 0
	}
	return plaintext.Position(s.Data, offset)
}

// fault describes what is wrong at an offset. key is the path of the key, or "".
func (s *Source) fault(at int, key, format string, args ...any) Fault {
	line, column := s.Position(at)
	return Fault{Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...)}
}

// Fault is something wrong in a configuration: a text that is not TOML or JSON, or an
// unexpected value.
type Fault struct {
	File         string // or the flag that sets the key; TOML and JSON leave it empty
	Line, Column int    // both counted from 1; 0 if the fault concerns all of the file
	Key          string // the path of the key, or ""
	Message      string
	Nearest      string // the most similar valid key or value, or ""
	Err          error  // the cause; may be nil
}

// Node is one value of a TOML or JSON document, with its position.
type Node struct {
	Parent *Node
	Key    string  // in the parent, if it is a table
	index  int     // in the parent, if it is a list
	KeyAt  int     // offset of the key; in a list, offset of the value
	At     int     // offset of the value
	Source *Source // the flag that sets it; nil for the source of the parent
	// Value is a string, int64, float64, bool, Moment, List or *Table; nil is JSON's
	// null.
	Value any
}

// Moment is a date, a time or both, as written in TOML.
type Moment string

// List has the elements of a list.
type List []*Node

// Table has the members of a table, each name once.
type Table struct {
	Members []*Node // in the order of the file
	byKey   map[string]*Node
}

// NewTable returns a table without members.
func NewTable() *Table { return &Table{byKey: map[string]*Node{}} }

// Member returns the member of that name if n is a table and has one. A member that is
// null in JSON counts as missing.
func (n *Node) Member(key string) *Node {
	t, ok := n.Value.(*Table)
	if !ok {
		return nil
	}
	if m := t.byKey[key]; m != nil && m.Value != nil {
		return m
	}
	return nil
}

// Members returns the members of n, if it is a table.
func (n *Node) Members() []*Node {
	if t, ok := n.Value.(*Table); ok {
		return t.Members
	}
	return nil
}

// AsList returns the elements of n. It reports false if n is nil or not a list.
func (n *Node) AsList() (List, bool) {
	if n == nil {
		return nil, false
	}
	l, ok := n.Value.(List)
	return l, ok
}

// put adds child to the table n. If the table already has a member of that name, put
// keeps and returns it.
func (n *Node) put(child *Node) (earlier *Node) {
	t := n.Value.(*Table)
	if earlier = t.byKey[child.Key]; earlier != nil {
		return earlier
	}
	child.Parent = n
	t.Members = append(t.Members, child)
	t.byKey[child.Key] = child
	return nil
}

// Set adds child to the table n, and removes an earlier member of that name.
func (n *Node) Set(child *Node) {
	n.Remove(child.Key)
	n.put(child)
}

// Remove removes a member of the table n, if it has one of that name.
func (n *Node) Remove(key string) {
	t := n.Value.(*Table)
	t.Members = slices.DeleteFunc(t.Members, func(m *Node) bool { return m.Key == key })
	delete(t.byKey, key)
}

// push adds child to the list n.
func (n *Node) push(child *Node) {
	l := n.Value.(List)
	child.Parent, child.index = n, len(l)
	n.Value = append(l, child)
}

// Path returns the position of n as a user writes it: mcp.weather.command[0].
func (n *Node) Path() string {
	var parts []string
	for ; n.Parent != nil; n = n.Parent {
		if _, ok := n.Parent.Value.(List); ok {
			parts = append(parts, "["+strconv.Itoa(n.index)+"]")
			continue
		}
		part := plaintext.ShowKey(n.Key)
		if n.Parent.Parent != nil {
			part = "." + part
		}
		parts = append(parts, part)
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return b.String()
}

// Under returns the path of a member of n, which need not exist.
func (n *Node) Under(key string) string {
	if n.Parent == nil {
		return plaintext.ShowKey(key)
	}
	return n.Path() + "." + plaintext.ShowKey(key)
}

// Kind describes the kind of n for messages.
func (n *Node) Kind() string {
	switch n.Value.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case Moment:
		return "a date or time"
	case List:
		return "a list"
	case *Table:
		return "a table"
	}
	return "null"
}

// Free returns the plain Go value of n and everything below it, with each string and
// float passed through leaf.
func (n *Node) Free(leaf func(*Node) any) any {
	switch v := n.Value.(type) {
	case string, float64:
		return leaf(n)
	case Moment:
		return string(v)
	case List:
		values := make([]any, len(v))
		for i, child := range v {
			values[i] = child.Free(leaf)
		}
		return values
	case *Table:
		values := make(map[string]any, len(v.Members))
		for _, child := range v.Members {
			values[child.Key] = child.Free(leaf)
		}
		return values
	}
	return n.Value
}
