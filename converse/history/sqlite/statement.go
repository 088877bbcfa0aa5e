// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// command is a prepared statement of the writer that returns no rows. It is run by the
// driver itself: an append is a few short statements, and database/sql would cost as much
// as some of them.
type command struct {
	driver.Stmt
	run    func(context.Context, []driver.NamedValue) (driver.Result, error)
	hasNow bool // it has the argument @now
}

// Exec implements [sqlstore.Tx].
func (w *writer) Exec(_ context.Context, statement string, args ...any) (changed int64, err error) {
	err = w.conn.Raw(func(conn any) error {
		c, err := w.command(conn, statement)
		if err != nil {
			return err
		}
		if err := w.setArgs(args, c.hasNow); err != nil {
			return err
		}
		defer clear(w.args) // they can be long
		result, err := c.run(background, w.args)
		if err == nil {
			changed, err = result.RowsAffected()
		}
		return err
	})
	return changed, err
}

// command returns a prepared statement. It is closed with the writer.
func (w *writer) command(conn any, text string) (*command, error) {
	if c := w.commands[text]; c != nil {
		return c, nil
	}
	preparer, ok := conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, fmt.Errorf("the driver's connection is a %T, which cannot prepare a statement", conn)
	}
	statement, err := preparer.PrepareContext(background, translate(text))
	if err != nil {
		return nil, err
	}
	runner, ok := statement.(driver.StmtExecContext)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's statement is a %T, which cannot be run", statement), statement.Close())
	}
	c := &command{statement, runner.ExecContext, strings.Contains(text, "@now")}
	w.commands[text] = c
	return c, nil
}

// setArgs sets w.args to the arguments of a statement.
func (w *writer) setArgs(args []any, hasNow bool) error {
	w.args = w.args[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	if hasNow {
		w.args = append(w.args, driver.NamedValue{Ordinal: len(args) + 1, Name: "now", Value: w.now()})
	}
	return nil
}

// now is the value of the argument @now.
func (w *writer) now() int64 { return w.store.clock().UnixNano() }

// closeCommands closes the prepared statements.
func (w *writer) closeCommands() error {
	return w.conn.Raw(func(any) error {
		var err error
		for _, c := range w.commands {
			err = errors.Join(err, c.Close())
		}
		return err
	})
}

// query returns a prepared statement that returns rows. It is closed with the writer.
func (w *writer) query(text string) (*sql.Stmt, error) {
	if statement := w.queries[text]; statement != nil {
		return statement, nil
	}
	statement, err := w.conn.PrepareContext(background, translate(text))
	if err == nil {
		w.queries[text] = statement
	}
	return statement, err
}
