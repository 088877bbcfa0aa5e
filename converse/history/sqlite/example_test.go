// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
)

// A conversation outlives the program that held it.
func Example() {
	folder, err := os.MkdirTemp("", "talks")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	ctx, path := context.Background(), filepath.Join(folder, "talks.db")

	store, err := sqlite.Open(path, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Append(ctx, "talk", 0,
		canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Is it raining in Oslo?")}))
	fmt.Println(store.Close())

	store, err = sqlite.Open(path, nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	for info, err := range store.List(ctx, history.Filter{Text: "oslo rain"}) {
		fmt.Println(info.ID, info.Length, info.Last, err)
	}
	for c, err := range store.Read(ctx, "talk", 0) {
		fmt.Println(history.TextOf(c), err)
	}
	// Output:
	// <nil>
	// <nil>
	// talk 1 user <nil>
	// Is it raining in Oslo? <nil>
}

// What cannot be opened is an error at once.
func ExampleOpen() {
	_, err := sqlite.Open("", nil)
	fmt.Println(err)
	// Output:
	// history/sqlite: the path of the database is empty
}
