// SPDX-License-Identifier: Apache-2.0

// Package config reads a program's configuration from TOML, checks it as a whole, and
// makes model, roster and conversation options from it.
//
// Two calls lead from a file to a conversation:
//
//	settings, err := config.Load("consort.toml", nil)
//	...
//	parts, err := config.Assemble(settings, nil)
//	...
//	defer parts.Close(ctx)
//	talk := converse.New(parts.Model, parts.Roster, parts.Options)
//
// This conversation is not stored, even if the file has a table [history]: set ID, and Log to
// the store that [Assembly.History] returns, in parts.Options. Without a log, a wait of
// [ActionDefer] is only in memory.
//
// A program may change the settings between the two calls, and the parts after the
// second: [Config] consists of plain structs, and nothing connects before a conversation
// needs it. A program may also build a [Config] itself. docs/configuration.md documents
// the keys of the file.
//
// The same parts can serve other MCP hosts:
//
//	server := mcpserver.New(parts.Roster, parts.Serve)
//
// # Problems
//
// [Load] and [Parse] report all problems together. The error is an [*Error] of
// [*Problem]s, each with file, line, column, key, the expected form and the most similar
// valid key. A problem names keys and variables, and never quotes a value.
//
// # Secrets
//
// Package values has the strings and free-form tables that can contain secrets. Printing
// either, with any verb or as JSON, shows the text in the file or [hidden]. Reveal returns
// the real text.
//
// [Assemble] also redacts secrets from the output of servers and tools before it enters a
// history, an event, a log or an error. docs/configuration.md defines what counts as a
// secret, and what is not found. Use Assembly.Redact for text that the program shows
// itself.
//
// # Options
//
// A struct for a table embeds the options of the package that it configures, such as
// [converse.Limits] in [Conversation], and adds the fields that only a file needs. Zero
// means the default of that package. Where 0 in a file means none, it is stored as a
// negative number.
//
// # Another store, transport or model
//
// Each kind is registered once: stores in history.go, transports in transport.go, and the
// APIs of models in model.go. A new kind needs its own package and an entry there. A store
// implements [history.Store] and passes historytest.TestStore, and its ledger, if it has
// one, budgettest.TestLedger.
//
// # How a file is read
//
// A TOML document and an imported JSON document become the same tree of values with
// positions (internal/document). One walker processes a tree with lists of fields (root.go,
// server.go, imports.go). Each field binds a key to a kind of value and to its destination
// in a struct (internal/grammar). The lists are the whole grammar.
// docs/decisions/0005-configuration.md lists the rejected alternatives.
package config
