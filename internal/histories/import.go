// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// Import adds the conversations of an exported file, or of standard input if path is -,
// and prints their IDs. ID is another ID for the only conversation of the file. Conversations of clients that this
// configuration served from the user's own store belong to the same clients in a named store.
func (m *Manager) Import(ctx context.Context, path, id string) error {
	var from io.Reader
	if path == "-" {
		from = terminal.Until(ctx, m.to.Stdin)
	} else {
		file, err := os.Open(path)
		if err != nil {
			return exit.Usagef("%w", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return exit.Usagef("%s is a folder; name a file that consort history export has written", path)
		}
		from = file
	}
	store := m.raw
	if !m.at.own {
		scope, err := m.at.ownScope()
		if err != nil {
			return err
		}
		store = unscoped{store, ClientsOnly{Scope: scope}.Owner("")}
	}
	var there error
	names := renaming{to: id}
	for info, err := range bundle.Import(ctx, store, from, &bundle.ImportOptions{ID: names.id}) {
		_, bad := errors.AsType[*bundle.Error](err)
		switch {
		case errors.Is(err, history.ErrExists):
			there = errors.Join(there, taken(err, info.ID))
			continue
		case bad && id != "" && names.seen > 1:
			return errors.Join(there, exit.Usagef("--id is for a file with one conversation, and %s has more: only the first one was imported. Import the file without --id", path))
		case bad:
			return errors.Join(there, exit.Usagef("%s: %w", path, err))
		case err != nil:
			return errors.Join(there, err)
		}
		m.to.Screen.PrintSafe(info.ID + "\n")
	}
	return errors.Join(there, m.to.Screen.Err())
}

// unscoped stores owners that begin with from as they are in a named store.
type unscoped struct {
	history.Store
	from string
}

// Describe implements [history.Store].
func (s unscoped) Describe(ctx context.Context, conversation string, change history.Change) error {
	if change.Owner != nil {
		if client, ok := strings.CutPrefix(*change.Owner, s.from); ok {
			owner := config.OwnerPrefix + client
			change.Owner = &owner
		}
	}
	return s.Store.Describe(ctx, conversation, change)
}

// renaming gives the only conversation of a file another ID, if one is set.
type renaming struct {
	to   string
	seen int // conversations so far
}

// id returns the new ID of a conversation. It is empty for a second one, which is then
// refused.
func (r *renaming) id(was string) string {
	r.seen++
	switch {
	case r.to == "":
		return was
	case r.seen == 1:
		return r.to
	}
	return ""
}
