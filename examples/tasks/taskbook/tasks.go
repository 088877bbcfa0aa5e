// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"database/sql"
	"time"

	"github.com/consort-go/consort/invoker"
)

// User is the trusted value that identifies the owner of the tasks.
var User = invoker.NewTrusted[int64]("user_id")

// PageSize is the maximum number of tasks that list_tasks returns.
const PageSize = 200

// Task is a task in the form that its user sees.
type Task struct {
	ID        int64     `json:"id"`
	Title     string    `json:"title"`
	Completed bool      `json:"completed"`
	CreatedAt time.Time `json:"created_at"`
}

// One is the result of the tools for a single task: the task after the change, or before
// it was deleted.
type One struct {
	Task Task `json:"task"`
}

// Page is the result of list_tasks.
type Page struct {
	Tasks []Task `json:"tasks"`
	More  bool   `json:"more,omitempty" jsonschema:"true if there are more: list again with after set to the last id"`
}

// NewTask holds the arguments of add_task.
type NewTask struct {
	Title string `json:"title" minLength:"1" jsonschema:"the text of the task; 1 to 500 characters"`
}

// Filter holds the arguments of list_tasks.
type Filter struct {
	Completed *bool `json:"completed,omitempty" jsonschema:"true for only the completed tasks, false for only the open ones"`
	After     int64 `json:"after,omitempty" jsonschema:"only tasks with a greater id than this one"`
}

// Retitle holds the arguments of update_task.
type Retitle struct {
	TaskID int64  `json:"task_id" jsonschema:"the id, as returned by list_tasks"`
	Title  string `json:"title" minLength:"1" jsonschema:"the text of the task; 1 to 500 characters"`
}

// Which holds the arguments of complete_task and delete_task.
type Which struct {
	TaskID int64 `json:"task_id" jsonschema:"the id, as returned by list_tasks"`
}

// AddTask adds a task for the user in ctx.
func (b *Book) AddTask(ctx context.Context, in NewTask) (One, error) {
	title, err := cleanTitle(in.Title)
	if err != nil {
		return One{}, err
	}
	now := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	return b.change(ctx, 0, `INSERT INTO tasks (user_id, title, created_at) VALUES (:user, :title, :now) RETURNING `+columns,
		sql.Named("title", title), sql.Named("now", now))
}

// ListTasks returns up to PageSize tasks of the user in ctx that match the filter, oldest
// first.
func (b *Book) ListTasks(ctx context.Context, in Filter) (Page, error) {
	user, err := userOf(ctx)
	if err != nil {
		return Page{}, err
	}
	var page Page
	err = b.patiently(func() error {
		page = Page{Tasks: []Task{}}
		rows, err := b.read.QueryContext(ctx, `SELECT `+columns+` FROM tasks WHERE user_id = :user AND id > :after
			AND (:completed IS NULL OR completed = :completed) ORDER BY id LIMIT :limit`,
			user, sql.Named("after", in.After), sql.Named("completed", in.Completed), sql.Named("limit", PageSize+1))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			task, err := scan(rows.Scan)
			if err != nil {
				return err
			}
			page.Tasks = append(page.Tasks, task)
		}
		return rows.Err()
	})
	if page.More = len(page.Tasks) > PageSize; page.More {
		page.Tasks = page.Tasks[:PageSize]
	}
	return page, failed(ctx, err, 0)
}

// UpdateTask changes the title of a task of the user in ctx.
func (b *Book) UpdateTask(ctx context.Context, in Retitle) (One, error) {
	title, err := cleanTitle(in.Title)
	if err != nil {
		return One{}, err
	}
	return b.change(ctx, in.TaskID, `UPDATE tasks SET title = :title WHERE user_id = :user AND id = :id RETURNING `+columns,
		sql.Named("title", title))
}

// CompleteTask marks a task of the user in ctx as completed, if it is not completed
// already.
func (b *Book) CompleteTask(ctx context.Context, in Which) (One, error) {
	return b.change(ctx, in.TaskID, `UPDATE tasks SET completed = 1 WHERE user_id = :user AND id = :id RETURNING `+columns)
}

// DeleteTask deletes a task of the user in ctx permanently, and returns the deleted task.
func (b *Book) DeleteTask(ctx context.Context, in Which) (One, error) {
	return b.change(ctx, in.TaskID, `DELETE FROM tasks WHERE user_id = :user AND id = :id RETURNING `+columns)
}

// columns are the columns of a task that scan reads.
const columns = "id, title, completed, created_at"

func scan(from func(...any) error) (Task, error) {
	var task Task
	var created string
	err := from(&task.ID, &task.Title, &task.Completed, &created)
	if err == nil {
		task.CreatedAt, err = time.Parse(time.RFC3339, created)
	}
	return task, err
}

// change runs a statement that changes one task of the user in ctx, and returns the task.
// Other connections see the change only after the transaction is on disk.
func (b *Book) change(ctx context.Context, id int64, statement string, arguments ...any) (One, error) {
	user, err := userOf(ctx)
	if err != nil {
		return One{}, err
	}
	arguments = append(arguments, user, sql.Named("id", id))
	var task Task
	err = b.transact(ctx, func(tx *sql.Tx) (err error) {
		task, err = scan(tx.QueryRowContext(ctx, statement, arguments...).Scan)
		return err
	})
	if err != nil {
		return One{}, failed(ctx, err, id)
	}
	return One{task}, nil
}

// userOf returns the user in ctx as a query argument.
func userOf(ctx context.Context) (sql.NamedArg, error) {
	user, ok := User.From(ctx)
	if !ok {
		return sql.NamedArg{}, invoker.Failf(invoker.Unauthorized, "the user of the tasks is unknown")
	}
	return sql.Named("user", user), nil
}
