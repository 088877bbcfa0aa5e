// SPDX-License-Identifier: Apache-2.0

// Tasks is a task list for several users behind one model: README.md shows what
// this program prints, and why one user's model cannot reach the other's tasks.
//
//	go run ./examples/tasks
//
// It needs no key: what the models say is in script.go. The database and the
// audit trail are in a folder that is gone afterwards.
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

// run plays the three parts over one database in a folder.
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

// play runs in a folder that is gone afterwards, whatever happens.
func play(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "tasks")
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, out, folder), os.RemoveAll(folder))
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // who reads the output may stop; the folder goes all the same
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
