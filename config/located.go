// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/redact"
)

// keyError is an error about a key, found when its value is put to use.
type keyError struct {
	key    string // the path, or its end, if the error is within that of a table
	origin string // FILE:LINE of a table that another file has; empty if not known
	err    error
}

func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// about returns err as an error about a key, or about a key in the table of that
// name; nil if err is.
func about(key string, err error) error {
	if err == nil {
		return nil
	}
	if of, ok := err.(*keyError); ok {
		return &keyError{key + "." + of.key, of.origin, of.err}
	}
	return &keyError{key: key, err: err}
}

// Locate returns an error of [Config.OpenHistory] as an [*Error], which says where in
// the file the key stands; as it is if the configuration was not read from a file.
func (c *Config) Locate(err error) error {
	if err == nil || c.root == nil {
		return err
	}
	return c.located(err, c.Redact())
}

// find returns the node of a key, or the last one on the way to it; nil if there is
// none.
func (c *Config) find(key string) (found *node) {
	for in := c.root; in != nil; {
		next := (*node)(nil)
		elements, _ := in.asList()
		for _, child := range append(in.members(), elements...) {
			path := child.path()
			if rest, ok := strings.CutPrefix(key, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				found, next = child, child
				break
			}
		}
		in = next
	}
	return found
}

// located returns the error of putting the configuration to use: an [*Error] with the
// places of the keys, if it was read from a file.
func (c *Config) located(err error, clean func(string) string) error {
	if c.root == nil {
		return redact.Error(fmt.Errorf("config: %w", err), clean)
	}
	found := &problems{}
	c.collect(found, "", "", err, clean)
	return found.err()
}

// collect adds the problems of which an error about a key consists.
func (c *Config) collect(found *problems, key, origin string, err error, clean func(string) string) {
	if of, ok := err.(*keyError); ok { // itself, and not one in its chain
		if key != "" {
			of = about(key, of).(*keyError)
		}
		if of.origin != "" {
			origin = of.origin
		}
		c.collect(found, of.key, origin, of.err, clean)
		return
	}
	if several := joinedErrors(err); several != nil {
		for _, one := range several {
			c.collect(found, key, origin, one, clean)
		}
		return
	}
	p := &Problem{File: c.source.name, Key: key, Message: clean(err.Error()), Err: redact.Error(err, clean)}
	if n := c.find(key); n != nil {
		p.Line, p.Column = c.source.position(n.keyAt)
	}
	if file, line, ok := cutOrigin(origin); ok && file != c.source.name {
		p.File, p.Line, p.Column = file, line, 1
	}
	found.add(p)
}

// joinedErrors returns the errors that errors.Join has joined into err.
func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return nil
	}
	return joined.Unwrap()
}

// cutOrigin takes FILE:LINE apart.
func cutOrigin(origin string) (file string, line int, ok bool) {
	i := strings.LastIndexByte(origin, ':')
	if i < 0 {
		return "", 0, false
	}
	line, err := strconv.Atoi(origin[i+1:])
	return origin[:i], line, err == nil
}
