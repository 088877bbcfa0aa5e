// SPDX-License-Identifier: Apache-2.0

package config

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

// source is the text of one file, or a flag of the command line.
type source struct {
	name string
	data []byte // of a file
	flag bool   // name is a flag, without lines
}

// of returns the source of n: the flag that sets it, or else the file s.
func (s *source) of(n *node) *source {
	for ; n != nil; n = n.parent {
		if n.source != nil {
			return n.source
		}
	}
	return s
}

// where returns the place of n as FILE:LINE, or the flag that sets it.
func (s *source) where(n *node) string {
	of := s.of(n)
	line, _ := of.position(n.keyAt)
	if line == 0 {
		return of.name
	}
	return fmt.Sprintf("%s:%d", of.name, line)
}

// folder returns the folder where relative paths start: the file's, or for a flag the
// working directory.
func (s *source) folder() string {
	if s.flag {
		return "."
	}
	return filepath.Dir(s.name)
}

// position returns the line and the column of an offset, both counted from 1, or 0 for a
// flag. An offset inside a character counts as the start of that character.
func (s *source) position(offset int) (line, column int) {
	if s.flag {
		return 0, 0
	}
	return plaintext.Position(s.data, offset)
}

// fault describes what is wrong at an offset. key is the path of the key, or "".
func (s *source) fault(at int, key, format string, args ...any) fault {
	line, column := s.position(at)
	return fault{line: line, column: column, key: key, message: fmt.Sprintf(format, args...)}
}

// fault is something in a text that is not TOML or JSON.
type fault struct {
	line, column int    // both counted from 1
	key          string // the path of the key, or ""
	message      string
}

// node is one value of a TOML or JSON document, with its position.
type node struct {
	parent *node
	key    string  // in the parent, if it is a table
	index  int     // in the parent, if it is a list
	keyAt  int     // offset of the key; in a list, offset of the value
	at     int     // offset of the value
	source *source // the flag that sets it; nil for the source of the parent
	// value is a string, int64, float64, bool, moment, list or *table; nil is JSON's
	// null.
	value any
}

type (
	moment string // a date, a time or both, as written in TOML
	list   []*node
	table  struct {
		members []*node // in the order of the file
		byKey   map[string]*node
	}
)

func newTable() *table { return &table{byKey: map[string]*node{}} }

// member returns the member of that name if n is a table and has one. A member that is
// null in JSON counts as missing.
func (n *node) member(key string) *node {
	t, ok := n.value.(*table)
	if !ok {
		return nil
	}
	if m := t.byKey[key]; m != nil && m.value != nil {
		return m
	}
	return nil
}

// members returns the members of n, if it is a table.
func (n *node) members() []*node {
	if t, ok := n.value.(*table); ok {
		return t.members
	}
	return nil
}

// asList returns the elements of n. It reports false if n is nil or not a list.
func (n *node) asList() (list, bool) {
	if n == nil {
		return nil, false
	}
	l, ok := n.value.(list)
	return l, ok
}

// put adds child to the table n. If the table already has a member of that name, put
// keeps and returns it.
func (n *node) put(child *node) (earlier *node) {
	t := n.value.(*table)
	if earlier = t.byKey[child.key]; earlier != nil {
		return earlier
	}
	child.parent = n
	t.members = append(t.members, child)
	t.byKey[child.key] = child
	return nil
}

// set adds child to the table n, and removes an earlier member of that name.
func (n *node) set(child *node) {
	n.remove(child.key)
	n.put(child)
}

// remove removes a member of the table n, if it has one of that name.
func (n *node) remove(key string) {
	t := n.value.(*table)
	t.members = slices.DeleteFunc(t.members, func(m *node) bool { return m.key == key })
	delete(t.byKey, key)
}

// push adds child to the list n.
func (n *node) push(child *node) {
	l := n.value.(list)
	child.parent, child.index = n, len(l)
	n.value = append(l, child)
}

// path returns the position of n as a user writes it: mcp.weather.command[0].
func (n *node) path() string {
	var parts []string
	for ; n.parent != nil; n = n.parent {
		if _, ok := n.parent.value.(list); ok {
			parts = append(parts, "["+strconv.Itoa(n.index)+"]")
			continue
		}
		part := plaintext.ShowKey(n.key)
		if n.parent.parent != nil {
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

// under returns the path of a member of n, which need not exist.
func (n *node) under(key string) string {
	if n.parent == nil {
		return plaintext.ShowKey(key)
	}
	return n.path() + "." + plaintext.ShowKey(key)
}

// kind describes the kind of n for messages.
func (n *node) kind() string {
	switch n.value.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case moment:
		return "a date or time"
	case list:
		return "a list"
	case *table:
		return "a table"
	}
	return "null"
}

// free returns the plain Go value of n and everything below it, with each string and
// float passed through leaf.
func (n *node) free(leaf func(*node) any) any {
	switch v := n.value.(type) {
	case string, float64:
		return leaf(n)
	case moment:
		return string(v)
	case list:
		values := make([]any, len(v))
		for i, child := range v {
			values[i] = child.free(leaf)
		}
		return values
	case *table:
		values := make(map[string]any, len(v.members))
		for _, child := range v.members {
			values[child.key] = child.free(leaf)
		}
		return values
	}
	return n.value
}
