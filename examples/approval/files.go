// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/consort-go/consort/invoker"
)

type name struct {
	Name string `json:"name" jsonschema:"name of a file"`
}

// fileTools returns two tools that can access only one directory. list has a read-only
// hint; remove has no hints, so it may do anything.
func fileTools(directory string) ([]invoker.Invoker, error) {
	root, err := os.OpenRoot(directory) // stays open while the program runs
	if err != nil {
		return nil, err
	}
	list, err := invoker.New("list", "List the files.",
		func(context.Context, struct{}) ([]string, error) { return fs.Glob(root.FS(), "*") },
		&invoker.Options{Hints: invoker.Hints{ReadOnly: true}})
	if err != nil {
		return nil, err
	}
	remove, err := invoker.New("remove", "Remove a file for good.",
		func(_ context.Context, n name) (string, error) {
			if err := root.Remove(n.Name); errors.Is(err, fs.ErrNotExist) {
				return "", invoker.Failf(invoker.NotFound, "there is no file %q", n.Name)
			} else if err != nil {
				return "", err
			}
			return "removed " + n.Name, nil
		}, nil)
	return []invoker.Invoker{list, remove}, err
}
