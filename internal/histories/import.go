// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// Import adds the conversations of an exported file, or of standard input if path is -,
// and prints their IDs. ID is another ID for the only conversation of the file.
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
		from = file
	}
	var there error
	names := renaming{to: id}
	for info, err := range bundle.Import(ctx, m.store, from, &bundle.ImportOptions{ID: names.id}) {
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
