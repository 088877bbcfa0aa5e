// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// dump returns the statements that recreate the database at a path: the text of its
// schema, its pragmas, and each row of each table, including those of the full-text
// index.
func dump(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	marks := query(t, db, `SELECT 'PRAGMA journal_mode = ' || journal_mode FROM pragma_journal_mode
		UNION ALL SELECT 'PRAGMA application_id = ' || application_id FROM pragma_application_id
		UNION ALL SELECT 'PRAGMA user_version = ' || user_version FROM pragma_user_version`)
	schema := query(t, db, `SELECT s.sql FROM sqlite_schema s LEFT JOIN pragma_table_list l ON l.name = s.name
		WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND ifnull(l.type, '') <> 'shadow' ORDER BY s.rowid`)
	statements := append(append(marks, "BEGIN"), schema...)
	for _, table := range query(t, db, `SELECT s.name FROM sqlite_schema s JOIN pragma_table_list l ON l.name = s.name
		WHERE s.type = 'table' AND l.type <> 'virtual' ORDER BY s.rowid`) {
		statements = append(statements, "DELETE FROM "+table) // rows inserted by the schema
		columns := query(t, db, "SELECT 'quote(' || name || ')' FROM pragma_table_info('"+table+"')")
		for _, row := range query(t, db, "SELECT concat_ws(', ', "+strings.Join(columns, ", ")+") FROM "+table) {
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%s)", table, row))
		}
	}
	return strings.Join(append(statements, "COMMIT"), ";\n") + ";\n"
}

// query returns the rows of a column of text.
func query(t *testing.T, db *sql.DB, text string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list
}

// restore makes a database of a dump, and returns its path.
func restore(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "talks.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	return path
}
