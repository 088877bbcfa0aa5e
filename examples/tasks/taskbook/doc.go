// SPDX-License-Identifier: Apache-2.0

// Package taskbook keeps the tasks of many users in one SQLite database, and
// offers them as five tools: add_task, list_tasks, update_task, complete_task
// and delete_task.
//
//	book, err := taskbook.Open(ctx, "tasks.db")
//	defer book.Close()
//	roster, err := ensemble.NewRoster(taskbook.Ensemble(book))
//
// Whose tasks they are is not for the model to say. Each tool needs the trusted
// value [User], which the program attaches to a conversation or to the request
// that it serves, and every query has it in its WHERE clause:
//
//	ctx = invoker.WithTrusted(ctx, taskbook.User.Is(42))
//
// A task of another user is answered like one that does not exist, with
// NOT_FOUND, so that nobody learns which ids there are.
//
// The tools hold no state: all of it is in the database, which any number of
// programs may use at the same time. What goes wrong in the database is told to
// the model in a sentence without details; those are in the failure's Cause, for
// logs and the audit trail.
package taskbook
