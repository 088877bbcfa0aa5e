// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/consort-go/consort/config/internal/grammar"
)

// A Key is a key that a configuration can have.
type Key struct {
	// Path is dotted, such as model.name and mcp.NAME.call_timeout. NAME stands for a name
	// that the user chooses, and [] for an element of a list.
	Path string
	// Kind describes the value as messages do, such as "a string".
	Kind string
	// Values are the valid values, without quotes, of a key that has only a few; otherwise
	// nil.
	Values []string
}

// Keys returns every key of a configuration, and of each table the keys below it, for
// programs that help people to write one.
func Keys() []Key { return keysOf(nil, "", new(Config).fields()) }

// keysOf adds the keys of fields to keys.
func keysOf(keys []Key, prefix string, fields []grammar.Field) []Key {
	for _, f := range fields {
		key := Key{Path: prefix + f.Key, Kind: f.Name}
		if f.Name == "a boolean" {
			key.Values = []string{"true", "false"}
		}
		for i, word := range strings.Split(f.Name, `"`) { // a kind with words names all of them
			if i%2 == 1 {
				key.Values = append(key.Values, word)
			}
		}
		keys = keysOf(append(keys, key), prefix+f.Key+f.Within+".", f.Fields)
	}
	return keys
}
