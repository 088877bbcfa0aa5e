// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/consort-go/consort/converse/history"
)

// The migrations: number n takes a database from version n-1 to version n. Released
// migrations never change.
//
//go:embed migrations/*.sql
var migrations embed.FS

// application marks the file as a store of conversations (PRAGMA application_id).
const application = 0x7a5b00d

// migrate updates the database to the newest version, in one transaction. It begins by
// locking the file, so that one of several programs migrates and the others find it
// done.
func migrate(ctx context.Context, db *sql.DB, from fs.FS) error {
	steps, err := fs.Glob(from, "migrations/*.sql")
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	version, err := versionOf(ctx, tx)
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return fmt.Errorf("%w: the database has version %d, and this program knows versions up to %d; use a program that is as new as the one that wrote it", history.ErrNewer, version, len(steps))
	case version == len(steps):
		return nil
	}
	for number := version + 1; number <= len(steps); number++ {
		step := fmt.Sprintf("migrations/%d.sql", number)
		text, err := fs.ReadFile(from, step)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}

// versionOf returns the version of the database, which is 0 if it is empty.
func versionOf(ctx context.Context, tx *sql.Tx) (int, error) {
	var owner, version, tables int
	err := tx.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&owner, &version, &tables)
	if err == nil && owner != application && (owner != 0 || version != 0 || tables != 0) {
		return 0, errors.New("the file is a database of another program")
	}
	return version, err
}
