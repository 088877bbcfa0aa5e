// SPDX-License-Identifier: Apache-2.0

// Package taskbook stores the tasks of many users in one SQLite database, and offers five
// tools for them: add_task, list_tasks, update_task, complete_task and delete_task.
//
//	book, err := taskbook.Open(ctx, "tasks.db")
//	defer book.Close()
//	roster, err := ensemble.NewRoster(taskbook.Ensemble(book))
//
// The model cannot choose the user. Each tool needs the trusted value [User], which the
// program attaches to a conversation or to the request that it serves, and every query
// has it in its WHERE clause:
//
//	ctx = invoker.WithTrusted(ctx, taskbook.User.Value(42))
//
// The tools report NOT_FOUND for a task of another user, as for a task that does not
// exist, so that users cannot find out which IDs exist.
//
// The tools are stateless: all state is in the database, which any number of programs may
// use at the same time. If the database fails, the model gets one sentence without
// details. The details are in the failure's Cause, for logs and the audit trail.
package taskbook
