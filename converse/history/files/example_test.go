// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/files"
)

// A conversation is there when the store is opened again, and in files that
// people can read.
func Example() {
	dir, err := os.MkdirTemp("", "conversations")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	store, err := files.Open(dir, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(store.Append(ctx, "talk", 0,
		canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Good morning.")},
		canister.User{Head: canister.Head{ID: "c2"}, Content: canister.Texts(strings.Repeat("Read this. ", 1000))}))
	fmt.Println(store.Close())

	store, err = files.Open(dir, nil)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	for c, err := range store.Read(ctx, "talk", 0) {
		fmt.Println(c.Header().ID, len(canister.TextOf(c.(canister.User).Content)), err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "talk", "history.jsonl"))
	if err != nil {
		panic(err)
	}
	fmt.Print(string(lines))
	// Output:
	// <nil>
	// <nil>
	// c1 13 <nil>
	// c2 11000 <nil>
	// {"kind":"user","id":"c1","content":[{"type":"text","text":"Good morning."}],"sum":"crc32c:11795687+1"}
	// {"kind":"user","id":"c2","content":[{"type":"text","metadata":{"io.github.consort-go/stored":{"sha256":"7af6e2ae8051eddb0f0c567459b196a0aaf513f8b415147c63f54f68fab0af50","bytes":11000,"member":"text"}}}],"sum":"crc32c:c10c0271"}
}
