// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Tools returns the five tools for a book: add_task, complete_task, delete_task,
// list_tasks and update_task.
func Tools(book *Book) ([]invoker.Invoker, error) {
	no := false
	tool := func(description string, hints invoker.Hints) invoker.Method {
		hints.OpenWorld = &no
		return invoker.Method{Description: description, Options: invoker.Options{Hints: hints, Needs: []invoker.Need{User}}}
	}
	return invoker.Methods(book, map[string]invoker.Method{
		"AddTask":      tool("Add a task to the user's list.", invoker.Hints{Destructive: &no}),
		"ListTasks":    tool("List the user's tasks, the oldest first.", invoker.Hints{ReadOnly: true}),
		"UpdateTask":   tool("Give a task of the user another title.", invoker.Hints{Idempotent: true}),
		"CompleteTask": tool("Mark a task of the user as completed.", invoker.Hints{Idempotent: true, Destructive: &no}),
		"DeleteTask":   tool("Delete a task of the user for good.", invoker.Hints{Idempotent: true}),
	})
}

// Ensemble returns the tools for a book as an ensemble named tasks. The caller must close
// the ensemble before the book.
func Ensemble(book *Book) *ensemble.Ensemble {
	tools, err := Tools(book)
	if err != nil {
		panic(err) // a bug in this package, which its tests exclude
	}
	return ensemble.Local("tasks", tools...)
}
