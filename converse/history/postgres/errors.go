// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5/pgconn"
)

// explanations are for the error codes of PostgreSQL; codes of two letters are classes.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
var explanations = map[string]string{
	"01":    "the server warned while it committed: a failover may lose the last operation, and repeating it is safe",
	"28":    "the server rejects this user",
	"3D000": "the server has no such database",
	"42501": "the role lacks a right that it needs, see docs/stores.md",
	"25006": "the database is read-only: it is a standby, or read-only for this role",
	"53100": "the server's disk is full; stored data is intact, and nothing was added",
	"53200": "the server is out of memory",
	"53300": "the server has no connection left; see Options.Connections and its max_connections",
	"57014": "the server ended the statement, possibly because of its statement_timeout",
	"55P03": "another session held a lock for longer than the server's lock_timeout",
	"57P01": "the server is stopping",
	"57P02": "the server has crashed",
	"57P03": "the server is starting or stopping",
	"25P03": "the server ended the transaction because this program was silent for too long",
	"3F000": "the schema of the conversations is missing",
	"42P01": "a table of the conversations is missing",
}

// damageCodes are the codes that report damaged data: damaged files, and tables that
// contradict each other.
var damageCodes = []string{"XX001", "XX002", "23505"}

// explain translates an error of an operation on a conversation to one that says what
// happened.
// The result contains neither passwords nor the data to be written.
func (s *Store) explain(ctx context.Context, conversation string, err error) error {
	corrupt, isCorrupt := errors.AsType[*history.CorruptError](err)
	pg, isPG := errors.AsType[*pgconn.PgError](err)
	_, isConnect := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case err == nil, errors.Is(err, history.ErrClosed):
		return err
	case isCorrupt:
		if corrupt.Conversation == "" {
			corrupt.Conversation = conversation
		}
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case s.common.Closed():
		return history.ErrClosed
	case isPG:
		return s.serverError(conversation, pg)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("history/postgres: %s: no answer within Options.Timeout, %v: %w", s.location, s.timeout, errSilent)
	case isConnect:
		return fmt.Errorf("history/postgres: %s: the server cannot be reached: %w", s.location, networkError(err))
	case lost(err):
		return fmt.Errorf("history/postgres: %s: the connection was lost; the last operation may or may not have taken effect, and repeating it is safe: %w", s.location, networkError(err))
	}
	return fmt.Errorf("history/postgres: %s: %w", s.location, err)
}

// orContextError replaces the server's error by the error of ctx if that has ended: the server
// only reports that the statement was cancelled, and this program has cancelled it.
func orContextError(ctx context.Context, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "57014" && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// errSilent is returned when Options.Timeout has passed. It is not
// context.DeadlineExceeded, because the caller did not set that deadline.
var errSilent = fmt.Errorf("the database does not answer: %w", os.ErrDeadlineExceeded)

// serverError returns the error for an error report of the server.
func (s *Store) serverError(conversation string, pg *pgconn.PgError) error {
	short := &pgconn.PgError{Severity: pg.Severity, Code: pg.Code, Message: pg.Message} // no Detail: it may quote a row
	for _, code := range damageCodes {
		if strings.HasPrefix(pg.Code, code) {
			return &history.CorruptError{Conversation: conversation, Location: s.location, Err: short}
		}
	}
	text := explanations[pg.Code]
	if text == "" {
		text = explanations[pg.Code[:min(2, len(pg.Code))]]
	}
	if text != "" {
		text += ": "
	}
	return fmt.Errorf("history/postgres: %s: %s%w", s.location, text, short)
}

// networkError returns the network error within an error of pgx, whose text lists all
// attempts over several lines.
func networkError(err error) error {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name
	}
	return err
}

// lost reports whether the connection failed, rather than the statement.
func lost(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || pg.Code == "25P03"
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// retryable reports whether an operation failed without effect and only because of
// concurrent operations.
func retryable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, sqlstore.ErrRace) || ok && (pg.Code == "40001" || pg.Code == "40P01")
}
