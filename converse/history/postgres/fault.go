// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/consort-go/consort/converse/history"
	"github.com/jackc/pgx/v5/pgconn"
)

// usable says what is wrong before anything is done.
func (s *Store) usable(ctx context.Context) error {
	if s.closed() {
		return history.ErrClosed
	}
	return ctx.Err()
}

func (s *Store) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// words are what the codes of PostgreSQL mean here; those of two letters are
// classes. https://www.postgresql.org/docs/current/errcodes-appendix.html
var words = map[string]string{
	"28":    "the server does not let this user in",
	"3D000": "the server has no such database",
	"42501": "the role lacks a right that it needs, see docs/durability.md",
	"25006": "the database takes no writes: it is a standby, or made read-only for this role",
	"53100": "the disk of the server is full; what was kept before is still there, and nothing was added",
	"53200": "the server is out of memory",
	"53300": "the server has no connection left; see Options.Connections and its max_connections",
	"57014": "the server ended the statement, as its statement_timeout may have asked for",
	"55P03": "somebody holds a lock for longer than the server's lock_timeout allows",
	"57P01": "the server is stopping",
	"57P02": "the server has crashed",
	"57P03": "the server is starting or stopping",
	"25P03": "the server ended the transaction, since this program was not heard of in the middle of it",
	"3F000": "the schema of the conversations is missing",
	"42P01": "a table of the conversations is missing",
}

// damage are the codes of what cannot be what was written: damaged files, and
// tables that contradict each other.
var damage = []string{"XX001", "XX002", "23505"}

// fault says in words what PostgreSQL says, of something that was done with a
// conversation. Neither a password nor what was to be written is in it.
func (s *Store) fault(ctx context.Context, conversation string, err error) error {
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
	case s.closed():
		return history.ErrClosed
	case isPG:
		return s.said(conversation, pg)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("history/postgres: %s: no answer within Options.Timeout, %v: %w", s.place, s.timeout, errSilent)
	case isConnect:
		return fmt.Errorf("history/postgres: %s: the server cannot be reached: %w", s.place, reason(err))
	case lost(err):
		return fmt.Errorf("history/postgres: %s: the connection was lost; whether the last thing was done is open, and to do it again is safe: %w", s.place, reason(err))
	}
	return fmt.Errorf("history/postgres: %s: %w", s.place, err)
}

// late is the error of something whose time was bounded by ctx: the server says
// no more than that the statement was cancelled, which was done from here then.
func late(ctx context.Context, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "57014" && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// errSilent stands for the end of a time that the caller did not set, and so is
// not context.DeadlineExceeded.
var errSilent = errors.New("the database is silent")

// said is the error about what the server said.
func (s *Store) said(conversation string, pg *pgconn.PgError) error {
	short := &pgconn.PgError{Severity: pg.Severity, Code: pg.Code, Message: pg.Message} // no Detail: it may quote a row
	for _, code := range damage {
		if strings.HasPrefix(pg.Code, code) {
			return &history.CorruptError{Conversation: conversation, Place: s.place, Err: short}
		}
	}
	text := words[pg.Code]
	if text == "" {
		text = words[pg.Code[:min(2, len(pg.Code))]]
	}
	if text != "" {
		text += ": "
	}
	return fmt.Errorf("history/postgres: %s: %s%w", s.place, text, short)
}

// reason is the error of the network within one of pgx, which lists what it has
// tried over several lines.
func reason(err error) error {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name
	}
	return err
}

// lost reports whether a connection failed, in contrast to what was done in it.
func lost(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || pg.Code == "25P03"
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// again reports whether something failed only since others did something at the
// same time, and without an effect.
func again(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errRace) || ok && (pg.Code == "40001" || pg.Code == "40P01")
}

// errRace says that somebody else has just made what was to be made.
var errRace = errors.New("somebody else was faster")

// corrupt is the error about a row.
func (s *Store) corrupt(conversation string, err error, format string, args ...any) error {
	return &history.CorruptError{Conversation: conversation, Place: s.place + ": " + fmt.Sprintf(format, args...), Err: err}
}
