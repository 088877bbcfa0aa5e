// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/grammar"
)

// Logins configures how a program stores the logins at servers.
type Logins struct {
	// Key is where the key that encrypts them is: "file", "keyring" for the keyring of the
	// operating system, or "auto" for the keyring if there is one. Empty means file. [Assemble]
	// ignores it: the program opens AssembleOptions.Logins.
	Key string
}

func (l *Logins) fields() []grammar.Field {
	return []grammar.Field{grammar.Key("key", grammar.Choice(&l.Key, "file", "keyring", "auto"))}
}
