// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Tools returns the five tools for a book: add_task, complete_task, delete_task,
// list_tasks and update_task.
func Tools(book *Book) []invoker.Invoker {
	no := false
	return []invoker.Invoker{
		tool("add_task", "Add a task to the user's list.", invoker.Hints{Destructive: &no}, book.AddTask),
		tool("complete_task", "Mark a task of the user as completed.", invoker.Hints{Idempotent: true, Destructive: &no}, book.CompleteTask),
		tool("delete_task", "Delete a task of the user permanently.", invoker.Hints{Idempotent: true}, book.DeleteTask),
		tool("list_tasks", "List the user's tasks, oldest first.", invoker.Hints{ReadOnly: true}, book.ListTasks),
		tool("update_task", "Change the title of a task of the user.", invoker.Hints{Idempotent: true}, book.UpdateTask),
	}
}

// tool makes a tool for the user of the call that uses only the book.
func tool[In, Out any](name, description string, hints invoker.Hints, method func(context.Context, In) (Out, error)) invoker.Invoker {
	no := false
	hints.OpenWorld = &no
	tool, err := invoker.New(name, description, method, &invoker.Options{Hints: hints, Needs: []invoker.Need{User}})
	if err != nil {
		panic(err) // a bug in this package, which its tests exclude
	}
	return tool
}

// Ensemble returns the tools for a book as an ensemble named tasks. The caller must close
// the ensemble before the book.
func Ensemble(book *Book) *ensemble.Ensemble { return ensemble.Local("tasks", Tools(book)...) }
