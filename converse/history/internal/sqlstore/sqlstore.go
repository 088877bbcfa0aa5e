// SPDX-License-Identifier: Apache-2.0

// Package sqlstore has the common part of the stores in SQL databases: how canisters are
// stored in rows, and the operations of [history.Store] and [budget.Ledger]. A store for
// another database implements [DB] and [Tx]: connections, transactions, locks, column
// types and search. It passes the suites historytest.TestStore and budgettest.TestLedger.
//
// The migrations of the packages sqlite and postgres create the tables. The
// statements here are in the SQL of PostgreSQL, with @. before the name of each table,
// for the schema, and @now for the current time. An implementation translates them.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
)

// Scanner is a row of a result, such as *sql.Row. If there are
// no rows, Scan returns [sql.ErrNoRows].
type Scanner interface{ Scan(dest ...any) error }

// Queryer runs statements that read.
type Queryer interface {
	// Row runs a statement that finds at most one row.
	Row(ctx context.Context, statement string, args ...any) Scanner
	// Each runs a statement, and calls do after each row was scanned into dest.
	Each(ctx context.Context, dest []any, do func() error, statement string, args ...any) error
	// Balances returns the balances of the accounts that exist.
	Balances(ctx context.Context, accounts []string) (map[string]budget.Balance, error)
}

// Tx is a transaction that writes. The first operation on it is Begin or
// LockReservation, and the last is Commit; if Commit is not called, nothing changes.
type Tx interface {
	Queryer
	// Begin begins the transaction with a statement, and passes its row to scan.
	Begin(ctx context.Context, scan func(Scanner) error, statement string, args ...any) error
	// LockReservation begins the transaction with a lock on the reservations of a work,
	// which need not exist.
	LockReservation(ctx context.Context, id string) error
	// HoldAccounts locks accounts until the transaction ends, and returns their
	// balances. It may create the missing ones.
	HoldAccounts(ctx context.Context, accounts []string) (map[string]budget.Balance, error)
	// Exec runs a statement and returns the number of rows that it changed.
	Exec(ctx context.Context, statement string, args ...any) (int64, error)
	// Queue runs a statement, now or in Commit.
	Queue(ctx context.Context, statement string, args ...any) error
	// Known returns the extent of a conversation if the transaction has begun and knows it without a statement.
	Known(conversation string) (e Extent, ok bool)
	// Forget is called before a conversation is deleted: Known does not know it afterwards.
	Forget(conversation string)
	// Insert runs or queues the statements that add rows to the tables canisters,
	// contents and parts, for a conversation with the extent e before.
	Insert(ctx context.Context, e Extent, rows []Row) error
	// Commit runs the queued statements and commits. It returns when the standbys that must
	// confirm have all that was committed before, also if the transaction has changed nothing.
	Commit(ctx context.Context) error
}

// DB is a database with the tables.
type DB interface {
	// Query runs do, which only reads, and repeats it if the database is busy or the
	// connection is lost. It explains the error, but returns [sql.ErrNoRows] as it is.
	Query(ctx context.Context, conversation string, do func(context.Context, Queryer) error) error
	// Write runs do in a transaction, and repeats it if that failed without effect; do
	// may still run after Write has returned the error of the context. If do returns a
	// verdict, it has changed nothing, and Write returns the verdict. If do returns an
	// error of the database, Write explains it.
	Write(ctx context.Context, conversation string, do func(context.Context, Tx) (verdict, err error)) error
	// Page reads a page of a conversation: at least one canister, or an error and the
	// canisters before the failure. The error is [ErrGap] if a row is missing.
	Page(ctx context.Context, want Want) ([]canister.Canister, error)
	// Matches returns the conversations that may match the filter, in the order of
	// [history.Info.Compare].
	Matches(ctx context.Context, filter history.Filter) ([]Match, error)
	// ScanInfo scans a row with the [Columns].
	ScanInfo(row Scanner) (key int64, info history.Info, err error)
	// Tags and Time return arguments of statements. The zero time is NULL.
	Tags(tags []string) any
	Time(t time.Time) any
	// Now returns the time by the clock of the database.
	Now(ctx context.Context) (time.Time, error)
}

// Columns are the columns of the table conversations that [DB.ScanInfo] scans.
const Columns = "key, id, title, tags, owner, created, changed, length, last, parent, parent_length"

// Match is a conversation that may match a filter.
type Match struct {
	Info history.Info
	// Left has the words that must still be found, by reading; usually none.
	Left history.Filter
	Err  error // why the conversation cannot be read
}

// ErrGap says that a row is missing.
var ErrGap = errors.New("the row is missing")

// ErrRace is the error of a transaction when another writer has just created the row.
// The transaction can be repeated.
var ErrRace = errors.New("another writer was faster")

// Store has the operations of a [history.Store] that are the same in all databases. Its
// fields must not change once it is in use.
type Store struct {
	DB DB
	// Location names the database in errors, without a password.
	Location string
	// Folded says that the tables canisters and contents have the column folded, with
	// the texts that a search compares.
	Folded bool
	// BeforeDelete are the statements that a deletion begins with; $1 is the key of the
	// conversation.
	BeforeDelete []string
	// Closing is closed when the store begins to close.
	Closing chan struct{}
}

// Closed reports whether the store has begun to close.
func (s *Store) Closed() bool {
	select {
	case <-s.Closing:
		return true
	default:
		return false
	}
}

// Usable returns the error of a closed store or an ended context.
func (s *Store) Usable(ctx context.Context) error {
	if s.Closed() {
		return history.ErrClosed
	}
	return ctx.Err()
}

// Corrupt returns the error about a damaged row.
func (s *Store) Corrupt(conversation string, err error, format string, args ...any) error {
	return &history.CorruptError{Conversation: conversation, Location: s.Location + ": " + fmt.Sprintf(format, args...), Err: err}
}

// write is [DB.Write] for a transaction with a result, which is safe although do may
// still run after write has returned.
func write[T any](ctx context.Context, db DB, conversation string, do func(context.Context, Tx) (result T, verdict, err error)) (result T, err error) {
	done := make(chan T, 1)
	err = db.Write(ctx, conversation, func(ctx context.Context, tx Tx) (verdict, err error) {
		result, verdict, err := do(ctx, tx)
		if verdict == nil && err == nil {
			select {
			case <-done: // from a transaction that failed
			default:
			}
			done <- result
		}
		return verdict, err
	})
	if err != nil {
		return result, named(err, conversation)
	}
	return <-done, nil
}

// named sets the conversation of a CorruptError that has none.
func named(err error, conversation string) error {
	if corrupt, ok := errors.AsType[*history.CorruptError](err); ok && corrupt.Conversation == "" {
		corrupt.Conversation = conversation
	}
	return err
}

// notFound reports whether an error says that a statement has found nothing.
func notFound(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// Newest returns the newest version of the tables: the number of migrations/*.sql.
// Number n takes the tables from version n-1 to version n. Released migrations never
// change.
func Newest(migrations fs.FS) (int, error) {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	return len(steps), err
}

// Upgrade runs the migrations after a version.
func Upgrade(migrations fs.FS, version int, run func(statements string) error) error {
	newest, err := Newest(migrations)
	if err != nil {
		return err
	}
	for version < newest {
		version++
		step := fmt.Sprintf("migrations/%d.sql", version)
		text, err := fs.ReadFile(migrations, step)
		if err != nil {
			return err
		}
		if err := run(string(text)); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// TooNew returns the error about tables that a newer program has created; what names
// the database or the schema.
func TooNew(what string, version, newest int) error {
	return fmt.Errorf("%w: the %s has version %d, and this program knows versions up to %d; use a program at least as new as the one that created it",
		canister.ErrNewer, what, version, newest)
}
