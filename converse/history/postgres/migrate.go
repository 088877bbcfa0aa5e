// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/jackc/pgx/v5"
)

// See [sqlstore.Newest].
//
//go:embed migrations/*.sql
var migrations embed.FS

// oldest is the first version of PostgreSQL with all features used here.
const oldest = 120000

// migrate updates the tables to the newest version. If they are up to date it only
// reads, so that a role without the right to create tables is sufficient.
func (s *Store) migrate(ctx context.Context, from fs.FS) error {
	newest, err := sqlstore.Newest(from)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := checkDatabase(ctx, tx); err != nil {
			return err
		}
		version, err := s.version(ctx, tx, newest)
		if err != nil || version == newest {
			return err
		}
		// One of several programs migrates, and the others find it done: they see the
		// result, because each statement sees everything committed before it.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('consort ' || $1, 0))", s.schema); err != nil {
			return err
		}
		if version, err = s.version(ctx, tx, newest); err != nil || version == newest {
			return err
		}
		return s.upgrade(ctx, tx, from, version, newest)
	})
}

// checkDatabase returns an error if the database itself is unsuitable.
func checkDatabase(ctx context.Context, tx pgx.Tx) error {
	var encoding string
	var number int
	if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"); err != nil {
		return err
	}
	err := tx.QueryRow(ctx, "SELECT current_setting('server_encoding'), current_setting('server_version_num')::int").Scan(&encoding, &number)
	switch {
	case err != nil:
		return err
	case number < oldest:
		return fmt.Errorf("the server is PostgreSQL %d, and must be %d or newer", number/10000, oldest/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s, and must have UTF8: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}

// version returns the version of the tables, or 0 if they do not exist.
func (s *Store) version(ctx context.Context, tx pgx.Tx, known int) (version int, err error) {
	var versioned, foreign bool
	err = tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE relname = 'consort_layout') > 0, count(*) > 0
		FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1`, s.name).Scan(&versioned, &foreign)
	switch {
	case err != nil:
		return 0, err
	case !versioned && foreign:
		return 0, fmt.Errorf("the schema %s has the tables of another program; choose another one with Options.Schema", s.schema)
	case !versioned:
		return 0, nil
	}
	err = tx.QueryRow(ctx, s.sql("SELECT version FROM @.consort_layout")).Scan(&version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("the table %s.consort_layout is empty; it should contain the version of the tables", s.schema)
	case err == nil && version > known:
		return 0, sqlstore.TooNew("schema "+s.schema, version, known)
	}
	return version, err
}

// upgrade updates the tables from one version to another.
func (s *Store) upgrade(ctx context.Context, tx pgx.Tx, from fs.FS, version, to int) error {
	var there bool
	// CREATE SCHEMA IF NOT EXISTS requires the right to create it even if it exists.
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", s.name).Scan(&there)
	if err == nil && !there {
		_, err = tx.Exec(ctx, "CREATE SCHEMA "+s.schema)
	}
	if err != nil {
		return err
	}
	if err := sqlstore.Upgrade(from, version, func(statements string) error {
		_, err := tx.Exec(ctx, s.sql(statements))
		return err
	}); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, s.sql("DELETE FROM @.consort_layout"))
	if err == nil {
		_, err = tx.Exec(ctx, s.sql("INSERT INTO @.consort_layout VALUES ($1)"), to)
	}
	return err
}
