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
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store keeps conversations in a PostgreSQL database. All methods may be called
// concurrently, and any number of programs may use the same database.
type Store struct {
	pool    *pgxpool.Pool
	name    string // of the schema
	schema  string // the same, quoted
	place   string // host, port and database, for errors
	timeout time.Duration

	ear  *ear
	bell *bell

	closing chan struct{}
	close   func() error // once
}

var _ history.Store = (*Store)(nil)

// Options are the choices of [Open].
type Options struct {
	// Schema is the schema of the tables, of up to 63 bytes; default "consort".
	// Stores with different schemas share nothing. It is made if the role may
	// make it.
	Schema string
	// Connections is how many connections the store has at most, beside one
	// for Listen and Watch. 0 is what the DSN says as pool_max_conns, or the
	// greater of 4 and the number of processors.
	Connections int
	// Timeout is how long each thing that the database does may take, in
	// addition to what a context allows; default 1 minute. A conversation is
	// read in many steps, and copied and deleted in one.
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

// Open opens the database that the DSN names, a URL or pairs of key=value as
// libpq takes them, and makes or updates its tables as needed: of several
// programs one does it and the others wait. Options may be nil. It is an error
// if the server cannot be reached or refuses the user, and history.ErrNewer if a
// newer program has made the tables. No error tells a password. The context
// bounds the opening. The caller closes the store.
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
		name:    name,
		schema:  pgx.Identifier{name}.Sanitize(),
		place:   placeOf(&config.ConnConfig.Config),
		timeout: cmp.Or(options.Timeout, time.Minute),
		closing: make(chan struct{}),
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.fault(ctx, "", err)
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.migrate(bounded, migrations); err != nil {
		s.pool.Close()
		return nil, s.fault(ctx, "", late(bounded, err))
	}
	listening := config.ConnConfig.Copy()
	listening.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()} // its waits are interrupted all the time
	}
	s.ear = newEar(s, listening)
	s.bell = newBell(s)
	s.close = sync.OnceValue(s.end)
	return s, nil
}

// Close waits for what is under way and closes the connections. Loops that still
// read or listen end with history.ErrClosed.
func (s *Store) Close() error { return s.close() }

func (s *Store) end() error {
	close(s.closing)
	s.bell.stop()
	s.ear.stop()
	s.pool.Close()
	return nil
}

// configOf reads the DSN. The error has nothing of it, since there is no telling
// where in a malformed one the password is.
func configOf(dsn string, options *Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil || misread(dsn, &config.ConnConfig.Config) {
		return nil, errors.New("history/postgres: the DSN cannot be read: it must be a URL, postgres://user:password@host:port/database, " +
			"with what is odd in the password escaped as %XX, or pairs such as host=… dbname=…; files that it names must be there")
	}
	if options.Connections > 0 {
		config.MaxConns = int32(options.Connections)
	}
	conn := config.ConnConfig
	conn.RuntimeParams["client_encoding"] = "UTF8"
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "consort"
	}
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}}
	}
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return c.PgConn().CustomData()[cancelled] == nil, nil
	}
	return config, nil
}

// misread reports whether a part of a password has become a host or a database: it
// had an @ or a / in it, which a URL takes for its own.
func misread(dsn string, config *pgconn.Config) bool {
	hosts := []string{config.Host}
	for _, other := range config.Fallbacks {
		hosts = append(hosts, other.Host)
	}
	for _, host := range hosts {
		if strings.LastIndex(host, "@") > 0 && host[0] != '/' && host[0] != '@' { // those two are sockets
			return true
		}
	}
	return strings.Contains(dsn, "://") && !strings.Contains(dsn, "%40") && strings.Contains(config.Database, "@")
}

// canceller has the server cancel a statement whose context ends, so that it does
// not wait there for a lock that nobody wants any more. The server may take its
// time for that, and then cancel what comes next on the connection: such a
// connection is not used again.
type canceller struct {
	pgconn.CancelRequestContextWatcherHandler
}

// cancelled is a key of what a connection knows.
const cancelled = "cancelled"

// HandleUnwatchAfterCancel implements [ctxwatch.Handler].
func (c *canceller) HandleUnwatchAfterCancel() {
	c.CancelRequestContextWatcherHandler.HandleUnwatchAfterCancel()
	c.Conn.CustomData()[cancelled] = true
}

func placeOf(config *pgconn.Config) string {
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
}

// sql returns a statement in which @ stands for the schema.
func (s *Store) sql(text string) string { return strings.ReplaceAll(text, "@.", s.schema+".") }
