// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/consort-go/consort/invoker"
	sqlite3 "modernc.org/sqlite/lib"
)

// failed converts the error of a query about the task with this ID. The text of a
// database error is only for logs, because it can contain paths and names of other
// tables.
func failed(ctx context.Context, err error, id int64) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return invoker.Failf(invoker.NotFound, "there is no task %d", id)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	failure := &invoker.Failure{Cause: err}
	switch codeOf(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		failure.Code, failure.Retryable, failure.RetryAfter = invoker.Unavailable, true, time.Second
		failure.Message = "The task book is busy, and nothing was changed. Try again."
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		failure.Code = invoker.Unavailable
		failure.Message = "The task book cannot be used at the moment. Nothing was changed."
	default:
		failure.Code = invoker.ExecutionFailed
		failure.Message = "The task book failed. The request may or may not have been carried out."
	}
	return failure
}
