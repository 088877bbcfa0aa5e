// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"context"
	"fmt"

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
	if err := bundle.Export(ctx, &moved, old, "monday", "tuesday"); err != nil {
		fmt.Println(err)
	}
	for info, err := range bundle.Import(ctx, next, &moved, nil) {
		fmt.Println(info.ID, info.Length, err)
	}
	// Output:
	// monday 1 <nil>
	// tuesday 1 <nil>
}
