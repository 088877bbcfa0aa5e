// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"errors"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Tools returns the five tools over a book.
func Tools(book *Book) ([]invoker.Invoker, error) {
	harmless := invoker.Hints{Destructive: new(bool), OpenWorld: new(bool)}
	reading := harmless
	reading.ReadOnly = true
	repeatable := harmless
	repeatable.Idempotent = true
	destroying := invoker.Hints{Idempotent: true, OpenWorld: new(bool)}
	var tools []invoker.Invoker
	var errs []error
	add := func(tool invoker.Invoker, err error) {
		tools, errs = append(tools, tool), append(errs, err)
	}
	options := func(hints invoker.Hints) *invoker.Options {
		return &invoker.Options{Hints: hints, Needs: []invoker.Need{User}}
	}
	add(invoker.New("add_task", "Add a task to the user's list.", book.Add, options(harmless)))
	add(invoker.New("list_tasks", "List the user's tasks, the oldest first.", book.List, options(reading)))
	add(invoker.New("update_task", "Give a task of the user another title.", book.Update, options(destroying)))
	add(invoker.New("complete_task", "Mark a task of the user as completed.", book.Complete, options(repeatable)))
	add(invoker.New("delete_task", "Delete a task of the user for good.", book.Delete, options(destroying)))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return tools, nil
}

// Ensemble returns the tools over a book as an ensemble of the name tasks. The
// caller closes the book after the ensemble.
func Ensemble(book *Book) *ensemble.Ensemble {
	tools, err := Tools(book)
	if err != nil {
		panic(err) // a mistake in this package, which its tests rule out
	}
	return ensemble.Local("tasks", tools...)
}
