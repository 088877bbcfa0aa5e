// SPDX-License-Identifier: Apache-2.0

// Tasks is a task list for several users of one model. README.md shows the output of this
// program, and explains why one user's model cannot reach another user's tasks.
//
//	go run ./examples/tasks
//
// It needs no key: script.go contains the answers of the models. The database and the
// audit trail are in a temporary folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker/audit"
)

// run plays the three parts with one database in folder.
func run(ctx context.Context, out io.Writer, folder string) (err error) {
	book, err := taskbook.Open(ctx, filepath.Join(folder, "tasks.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	records := filepath.Join(folder, "audit.jsonl")
	file, err := audit.OpenFile(records, nil)
	if err != nil {
		return err
	}
	defer file.Close()
	trail := audit.New(file, &audit.Options{Identity: []string{taskbook.User.Name()}})
	roster, err := ensemble.NewRoster(taskbook.Ensemble(book))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, roster.Close(ctx)) }()

	if err := converseAll(ctx, out, roster, trail); err != nil {
		return err
	}
	if err := serve(ctx, out, roster, trail); err != nil {
		return err
	}
	return review(out, records)
}

// play calls run with a temporary folder, and always removes it.
func play(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "tasks")
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, out, folder), os.RemoveAll(folder))
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // so that the folder is removed even if the reader of the output exits
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
