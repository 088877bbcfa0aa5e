// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

func says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// Two writers append at the same length: one succeeds, the other gets a ConflictError.
// Repeating an append that succeeded is not an error.
func Example() {
	ctx := context.Background()
	log := history.NewMemory()
	fmt.Println(log.Append(ctx, "talk", 0, says("c1", "Good morning.")))
	fmt.Println(log.Append(ctx, "talk", 1, says("c2", "Is it raining?")))
	fmt.Println("again:", log.Append(ctx, "talk", 1, says("c2", "Is it raining?")))

	var conflict *history.ConflictError
	late := log.Append(ctx, "talk", 1, says("c3", "What is the time?"))
	fmt.Println("conflict:", errors.As(late, &conflict), conflict.Length)
	for c, err := range log.Read(ctx, "talk", 0) {
		fmt.Println(c.Header().ID, history.TextOf(c), err)
	}
	// Output:
	// <nil>
	// <nil>
	// again: <nil>
	// conflict: true 2
	// c1 Good morning. <nil>
	// c2 Is it raining? <nil>
}

// Fork copies the beginning of a conversation to a new ID.
func ExampleStore_Fork() {
	ctx := context.Background()
	store := history.NewMemory()
	_ = store.Append(ctx, "talk", 0, says("c1", "Good morning."), says("c2", "Is it raining?"))
	fmt.Println(store.Fork(ctx, "talk", 1, "other"))
	fmt.Println(store.Append(ctx, "other", 1, says("c3", "Is it windy?")))
	for info, err := range store.List(ctx, history.Filter{Text: "WINDY"}) {
		fmt.Println(info.ID, info.Length, "from", info.Parent, info.ParentLength, err)
	}
	// Output:
	// <nil>
	// <nil>
	// other 2 from talk 1 <nil>
}

// Delete conversations unchanged for 30 days, except those tagged legal.
func ExampleRetention_Apply() {
	ctx := context.Background()
	store := history.NewMemory()
	for _, id := range []string{"talk", "contract"} {
		_ = store.Append(ctx, id, 0, says("c1", "Good morning."), canister.Assistant{Head: canister.Head{ID: "c2"}})
	}
	_ = store.Describe(ctx, "contract", history.Change{Tags: &[]string{"legal"}})
	retention := history.Retention{Keep: 30 * 24 * time.Hour, Rules: []history.RetentionRule{{Tag: "legal"}}}
	for info, err := range retention.Apply(ctx, store, time.Now().AddDate(0, 2, 0)) {
		fmt.Println("gone:", info.ID, err)
	}
	// Output:
	// gone: talk <nil>
}
