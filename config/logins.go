// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/grammar"
)

// Logins configures how a program stores the logins at servers.
type Logins struct {
	// Key is where the key that encrypts them is: "file", "keyring" for the keyring of the
	// operating system, or "auto" for the keyring if there is one. Empty means file. [Assemble]
	// ignores it: the program opens AssembleOptions.Logins.
	Key string
	// Store is where the logins are: "files" of the user, or "history", the database of the
	// [history] table, which several machines can share. Empty means history with PostgreSQL,
	// and files otherwise. [Assemble] ignores it too.
	Store string
	// Scope separates the logins from those of configurations with another scope. [Assemble]
	// ignores it too.
	Scope string
}

const loginsInHistory = "history" // Logins.Store

func (l *Logins) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("key", grammar.Choice(&l.Key, "file", "keyring", "auto")),
		grammar.Key("store", grammar.Choice(&l.Store, "files", loginsInHistory)),
		grammar.Key("scope", grammar.Text(&l.Scope)),
	}
}

// checkLogins reports logins in a conversation store that cannot have them. root is the whole
// file.
func (c *Config) checkLogins(r *grammar.Reader, root *document.Node) {
	if c.Logins.Store != loginsInHistory || root.Member("logins") == nil {
		return
	}
	at := root.Member("logins").Member("store")
	switch h := c.History; {
	case at == nil:
	case h == nil:
		r.WrongKey(at, `logins would be in the database of the conversations: add a table [history], such as with path = "history.db"`)
	case h.Store == StoreFiles, h.Store == StoreNone:
		r.WrongKey(at, "the conversations are in no database: remove this key, or store them in one")
	}
}
