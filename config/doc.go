// SPDX-License-Identifier: Apache-2.0

// Package config reads a program's configuration from TOML, checks it as a
// whole, and makes model, roster and conversation options from it.
//
// Two calls lead from a file to a conversation:
//
//	settings, err := config.Load("consort.toml")
//	...
//	parts, err := config.Assemble(settings, nil)
//	...
//	defer parts.Close(ctx)
//	talk := converse.New(parts.Model, parts.Roster, parts.Options)
//
// Between the two a program may change what it read, and after the second what
// was made of it: [Config] is plain structs, and nothing connects before a
// conversation needs it. A program may as well make a [Config] by hand. The
// keys of the file are documented in docs/configuration.md.
//
// The same parts serve other MCP hosts:
//
//	server := mcpadapter.NewServer(parts.Roster, parts.Serve)
//
// # Problems
//
// [Load] and [Parse] report everything that is wrong at once: the error is an
// [*Error] of [*Problem]s, each with file, line, column, key, what was expected
// and the nearest right key. A problem names keys and variables, and never
// quotes a value.
//
// # Secrets
//
// Strings in which environment variables are replaced are held as a [Value],
// free tables as a [Table]. Printing either, by any verb and as JSON, shows
// what stands in the file or [hidden]; Reveal gives the text to whoever asks
// for it by name.
//
// [Assemble] sees to it that secrets do not come back another way: what servers
// and tools say of them is redacted before it enters a history, an event, a log
// or an error. docs/configuration.md says what counts as a secret, and what is
// not found. Assembly.Redact is for texts that a program shows by itself.
//
// # How a file is read
//
// A TOML document and an imported JSON document become the same tree of values
// with their places (document.go, toml.go, json.go). One walker (reader.go)
// takes a tree apart by lists of fields (keys.go, server.go, imports.go), each
// of which binds a key to a kind of value (kinds.go) and to the place in a
// struct where it goes. The lists are the whole grammar.
// docs/decisions/0005-configuration.md says what was turned down.
package config
