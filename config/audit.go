// SPDX-License-Identifier: Apache-2.0

package config

// Audit says what is kept of each invocation, and where.
type Audit struct {
	// File takes the records as lines of JSON, after those that it has; empty
	// for none.
	File Value
	// Log has the records logged too, at level info whatever [Config].Log
	// says.
	Log bool
	// Identity are the names of the trusted values that a record shows. None
	// that is secret ever is.
	Identity []string
	// Omit are globs over the names of arguments, at any depth, whose values
	// are not recorded.
	Omit []string
	// ArgumentBytes bounds the arguments of one record; 0 means 4096.
	ArgumentBytes int
}

func (a *Audit) fields() []field {
	return []field{
		{"file", directory(&a.File)},
		{"log", boolean(&a.Log)},
		{"identity", each(&a.Identity, text)},
		{"omit", each(&a.Omit, text)},
		{"argument_bytes", integer(&a.ArgumentBytes, 1)},
	}
}

// check sees to it that the records go somewhere.
func (a *Audit) check(r *reader, n *node) {
	if n.member("file") == nil && !a.Log {
		r.missing(n, "file", `missing: expected where the records go, such as file = "audit.jsonl", or log = true`)
	}
}
