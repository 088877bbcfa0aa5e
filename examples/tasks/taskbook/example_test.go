// SPDX-License-Identifier: Apache-2.0

package taskbook_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker"
)

// Two users of one book.
func Example() {
	folder, err := os.MkdirTemp("", "taskbook")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	book, err := taskbook.Open(context.Background(), filepath.Join(folder, "tasks.db"))
	if err != nil {
		panic(err)
	}
	defer book.Close()

	ada := invoker.WithTrusted(context.Background(), taskbook.User.Value(1))
	ben := invoker.WithTrusted(context.Background(), taskbook.User.Value(2))
	added, err := book.AddTask(ada, taskbook.NewTask{Title: "  Buy milk "})
	fmt.Println(added.Task.ID, added.Task.Title, err)
	_, err = book.DeleteTask(ben, taskbook.Which{TaskID: added.Task.ID})
	fmt.Println(err)
	// Output:
	// 1 Buy milk <nil>
	// NOT_FOUND: there is no task 1
}

// The tools as a model sees them.
func ExampleTools() {
	for _, tool := range taskbook.Tools(new(taskbook.Book)) { // an unopened book: nothing is called here
		def := tool.Definition()
		fmt.Println(def.Name, def.Needs, def.Description)
	}
	// Output:
	// add_task [user_id] Add a task to the user's list.
	// complete_task [user_id] Mark a task of the user as completed.
	// delete_task [user_id] Delete a task of the user permanently.
	// list_tasks [user_id] List the user's tasks, oldest first.
	// update_task [user_id] Change the title of a task of the user.
}
