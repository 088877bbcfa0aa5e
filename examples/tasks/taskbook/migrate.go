// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// The migrations, in the order of their names. Migration n takes a database from version
// n-1 to version n. Released migrations must not be changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// application marks the file as a task book (PRAGMA application_id).
const application = 0x7a5b00c

// migrate updates the database to the latest version, in one transaction that begins by
// locking the file. If several processes start, one migrates and the others find the
// database up to date.
func (b *Book) migrate(ctx context.Context) error {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	return b.transact(ctx, func(tx *sql.Tx) error {
		version, err := versionOf(ctx, tx)
		switch {
		case err != nil:
			return err
		case version > len(steps):
			return fmt.Errorf("the database has version %d, but this program supports versions up to %d; use a newer program", version, len(steps))
		case version == len(steps):
			return nil
		}
		for _, step := range steps[version:] {
			text, err := migrations.ReadFile(step)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", step, err)
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, len(steps)))
		return err
	})
}

// versionOf returns the version of the database, 0 if it is empty.
func versionOf(ctx context.Context, tx *sql.Tx) (int, error) {
	var owner, version, tables int
	err := tx.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&owner, &version, &tables)
	if err == nil && owner != application && (owner != 0 || version != 0 || tables != 0) {
		return 0, errors.New("the file is a database of another program")
	}
	return version, err
}
