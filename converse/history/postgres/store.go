// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store is a [history.Store] in a PostgreSQL database. All methods may be called
// concurrently, and any number of programs may use the same database.
type Store struct {
	common   sqlstore.Store
	pool     *pgxpool.Pool
	name     string // of the schema
	schema   string // the same, quoted
	location string // host, port and database, for errors
	timeout  time.Duration
	dialect  *strings.Replacer // of the statements of sqlstore

	listener *listener
	notifier *notifier
	close    func() error // runs once
}

var _ history.Store = (*Store)(nil)

// Options configure [Open].
type Options struct {
	// Schema is the schema of the tables, of up to 63 bytes; default "consort". Stores
	// with different schemas share nothing. It is created if the role has the right to.
	Schema string
	// Connections is the maximum number of connections, in addition to one for Listen
	// and Watch. 0 means pool_max_conns of the DSN, or the greater of 4 and the number
	// of processors.
	Connections int
	// Timeout bounds each database operation, in addition to its context; default 1
	// minute. A conversation is read in many operations, but copied or deleted in one.
	Timeout time.Duration
}

func (o *Options) check() error {
	switch {
	case o.Connections < 0 || o.Connections > 1<<16:
		return fmt.Errorf("history/postgres: Options.Connections is %d; it must be 0 to %d", o.Connections, 1<<16)
	case o.Timeout < 0:
		return fmt.Errorf("history/postgres: Options.Timeout is %v; it must not be negative", o.Timeout)
	case len(o.Schema) > 63 || strings.ContainsRune(o.Schema, 0):
		return fmt.Errorf("history/postgres: Options.Schema is %q; a name in PostgreSQL has 63 bytes at most, and no NUL", o.Schema)
	}
	return nil
}

// Open opens the database that the DSN names, a URL or key=value pairs as in libpq, and
// creates or updates its tables as needed; if several programs do so, one migrates and
// the others wait. Options may be nil. Open returns an error if the server cannot be
// reached or refuses the user, and canister.ErrNewer if a newer program has created the
// tables. Errors never contain a password. The context bounds only Open itself. The
// caller must close the store.
func Open(ctx context.Context, dsn string, options *Options) (*Store, error) {
	if options == nil {
		options = &Options{}
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	config, err := configOf(dsn, options)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(options.Schema, "consort")
	s := &Store{
		name:     name,
		schema:   pgx.Identifier{name}.Sanitize(),
		location: placeOf(&config.ConnConfig.Config),
		timeout:  cmp.Or(options.Timeout, time.Minute),
	}
	s.dialect = strings.NewReplacer("@.", s.schema+".", "@now", "clock_timestamp()")
	s.common = sqlstore.Store{DB: database{s}, Location: s.location, Folded: true, BeforeDelete: beforeDelete, Closing: make(chan struct{})}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.explain(ctx, "", err)
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.migrate(bounded, migrations); err != nil {
		s.pool.Close()
		return nil, s.explain(ctx, "", orContextError(bounded, err))
	}
	listening := config.ConnConfig.Copy()
	listening.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()} // its waits are interrupted often
	}
	s.listener = newListener(s, listening)
	s.notifier = newNotifier(s)
	s.close = sync.OnceValue(s.end)
	return s, nil
}

// Now returns the time by the clock of the server, which sets Info.Changed.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return database{s}.Now(ctx) }

// Close waits for running operations and closes the connections. Loops that are still
// reading or listening end with history.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) end() error {
	close(s.common.Closing)
	s.notifier.stop()
	s.listener.stop()
	s.pool.Close()
	return nil
}

// configOf parses the DSN. The error does not quote it, because in a malformed DSN the
// password could be anywhere.
func configOf(dsn string, options *Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil || misread(dsn, &config.ConnConfig.Config) {
		return nil, errors.New("history/postgres: the DSN cannot be read: it must be a URL, postgres://user:password@host:port/database, " +
			"with special characters of the password escaped as %XX, or pairs such as host=… dbname=…; the files that it names must exist")
	}
	config.MaxConns = cmp.Or(int32(options.Connections), config.MaxConns)
	conn := config.ConnConfig
	conn.RuntimeParams["client_encoding"] = "UTF8"
	conn.RuntimeParams["application_name"] = cmp.Or(conn.RuntimeParams["application_name"], "consort")
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}}
	}
	conn.OnNotice = func(c *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warning] = (*pgconn.PgError)(notice)
		}
	}
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return c.PgConn().CustomData()[cancelled] == nil, nil
	}
	return config, nil
}

// misread reports whether part of a password was parsed as a host or a database,
// because it contains an @ or a /, which have a meaning in URLs.
func misread(dsn string, config *pgconn.Config) bool {
	hosts := []string{config.Host}
	for _, other := range config.Fallbacks {
		hosts = append(hosts, other.Host)
	}
	for _, host := range hosts {
		if strings.LastIndex(host, "@") > 0 && host[0] != '/' && host[0] != '@' { // those are sockets
			return true
		}
	}
	return strings.Contains(dsn, "://") && !strings.Contains(dsn, "%40") && strings.Contains(config.Database, "@")
}

// canceller makes the server cancel a statement whose context ends, so that it does not
// continue to wait for a lock. The server may cancel late, and hit the next statement
// on the connection, so such a connection is not reused.
type canceller struct {
	pgconn.CancelRequestContextWatcherHandler
}

// Keys in a connection's custom data. The warning is the server's last one, an error.
const cancelled, warning = "cancelled", "warning"

// HandleUnwatchAfterCancel implements [ctxwatch.Handler].
func (c *canceller) HandleUnwatchAfterCancel() {
	c.CancelRequestContextWatcherHandler.HandleUnwatchAfterCancel()
	c.Conn.CustomData()[cancelled] = true
}

func placeOf(config *pgconn.Config) string {
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
}

// sql translates a statement of sqlstore.
func (s *Store) sql(text string) string { return s.dialect.Replace(text) }
