// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/internal/redact"
)

// Locate converts an error of [Config.OpenHistory] to an [*Error], with the position of
// the key in the file. If the configuration was not read from a file, it returns err
// unchanged.
func (c *Config) Locate(err error) error {
	if err == nil || c.root == nil {
		return err
	}
	return c.located(err, c.Redact())
}

// LocateKey converts an error about the value of a key, such as serve.http, to an [*Error]
// with the position of the key, like [Config.Locate].
func (c *Config) LocateKey(key string, err error) error { return c.Locate(grammar.About(key, err)) }

// find returns the node of a key, or its nearest ancestor in the tree, or nil.
func (c *Config) find(key string) (found *document.Node) {
	for in := c.root; in != nil; {
		next := (*document.Node)(nil)
		elements, _ := in.AsList()
		for _, child := range append(in.Members(), elements...) {
			path := child.Path()
			if rest, ok := strings.CutPrefix(key, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				found, next = child, child
				break
			}
		}
		in = next
	}
	return found
}

// located converts an error from using the configuration. If the configuration was read
// from a file, the result is an [*Error] with the positions of the keys.
func (c *Config) located(err error, clean func(string) string) error {
	if c.root == nil {
		return redact.Error(fmt.Errorf("config: %w", err), clean)
	}
	found := &grammar.Faults{}
	c.collect(found, "", "", err, clean)
	return errorOf(found)
}

// collect adds the problems that make up an error about a key.
func (c *Config) collect(found *grammar.Faults, key, origin string, err error, clean func(string) string) {
	if of, ok := err.(*grammar.KeyError); ok { // err itself, not an error in its chain
		if key != "" {
			of = grammar.About(key, of).(*grammar.KeyError)
		}
		if of.Origin != "" {
			origin = of.Origin
		}
		c.collect(found, of.Key, origin, of.Err, clean)
		return
	}
	if several := joinedErrors(err); several != nil {
		for _, one := range several {
			c.collect(found, key, origin, one, clean)
		}
		return
	}
	p := &document.Fault{File: c.source.Name, Key: key, Message: clean(err.Error()), Err: redact.Error(err, clean)}
	n := c.find(key)
	if n != nil {
		of := c.source.Of(n)
		p.File = of.Name
		p.Line, p.Column = of.Position(n.KeyAt)
	}
	if file, line, ok := plaintext.CutOrigin(origin); ok && (n == nil || file != c.source.Name) {
		p.File, p.Line, p.Column = file, line, 1
	}
	found.Add(p)
}

// joinedErrors returns the errors in err if errors.Join created it.
func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return nil
	}
	return joined.Unwrap()
}
