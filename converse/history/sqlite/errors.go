// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/converse/history"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// codeOf returns SQLite's primary result code for an error, or SQLITE_OK (0) if the
// error is not from SQLite.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

func isBusy(err error) bool {
	code := codeOf(err)
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// isUnwritable reports whether an error says that nothing can be written, while reading may
// still work.
func isUnwritable(err error) bool {
	switch codeOf(err) {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR:
		return true
	}
	return false
}

// explain translates an error of SQLite, in an operation on a conversation if there is
// one, to an error that says what happened.
func (s *Store) explain(conversation string, err error) error {
	said := ""
	switch codeOf(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &history.CorruptError{Conversation: conversation, Location: s.path, Err: err}
	case sqlite3.SQLITE_CONSTRAINT:
		return &history.CorruptError{Conversation: conversation, Location: s.path, Err: fmt.Errorf("the tables contradict each other: %w", err)}
	case sqlite3.SQLITE_FULL:
		said = "the disk is full; stored data is intact, and nothing was added"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		said = "the file or its folder cannot be written"
	case sqlite3.SQLITE_IOERR:
		said = "the disk has failed or is full"
	default:
		_, corrupt := errors.AsType[*history.CorruptError](err)
		switch {
		case err == nil, corrupt, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return err
		case s.common.Closed():
			return history.ErrClosed
		case strings.Contains(err.Error(), "sql: Scan error"): // tables are STRICT: a value of another type is damaged
			return &history.CorruptError{Conversation: conversation, Location: s.path, Err: err}
		}
		return fmt.Errorf("history/sqlite: %s: %w", s.path, err)
	}
	return fmt.Errorf("history/sqlite: %s: %s: %w", s.path, said, err)
}
