// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// See [sqlstore.Newest].
//
//go:embed migrations/*.sql
var migrations embed.FS

// application marks the file as a store of conversations (PRAGMA application_id).
const application = 0x7a5b00d

// migrate updates the database to the newest version, in one transaction. It begins by
// locking the file, so that one of several programs migrates and the others find it
// done.
func migrate(ctx context.Context, db *sql.DB, from fs.FS) error {
	newest, err := sqlstore.Newest(from)
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
	case version > newest:
		return sqlstore.TooNew("database", version, newest)
	case version == newest:
		return nil
	}
	if err := sqlstore.Upgrade(from, version, func(statements string) error {
		_, err := tx.ExecContext(ctx, statements)
		return err
	}); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, newest)); err != nil {
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
