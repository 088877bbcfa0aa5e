// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
)

// Conversations move from one store to another.
func Example() {
	ctx := context.Background()
	old, next := history.NewMemory(), history.NewMemory()
	for _, id := range []string{"monday", "tuesday"} {
		_ = old.Append(ctx, id, 0, canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Good morning.")})
	}
	var moved bytes.Buffer
	if err := bundle.Export(ctx, &moved, old, bundle.JSONL, "monday", "tuesday"); err != nil {
		fmt.Println(err)
	}
	for info, err := range bundle.Import(ctx, next, &moved, nil) {
		fmt.Println(info.ID, info.Length, err)
	}
	// Output:
	// monday 1 <nil>
	// tuesday 1 <nil>
}

// A conversation to read.
func ExampleExport() {
	ctx := context.Background()
	store := history.NewMemory()
	_ = store.Append(ctx, "talk", 0, canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Good *morning*.")})
	var text strings.Builder
	if err := bundle.Export(ctx, &text, store, bundle.Markdown, "talk"); err != nil {
		fmt.Println(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	fmt.Println(lines[len(lines)-2])
	if err := bundle.Export(ctx, os.Stdout, store, "pdf", "talk"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Good *morning*.
	// bundle: unknown format "pdf": want jsonl, markdown or html
}
