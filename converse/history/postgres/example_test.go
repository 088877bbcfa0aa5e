// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"os"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
)

// A conversation that is begun on one machine goes on on another. It needs a
// server, which CONSORT_POSTGRES names.
func Example() {
	ctx, dsn := context.Background(), os.Getenv("CONSORT_POSTGRES")
	first, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	second, err := postgres.Open(ctx, dsn, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()

	question := canister.User{Head: canister.Head{ID: "c1"}, Content: canister.Texts("Is it raining in Oslo?")}
	fmt.Println(first.Append(ctx, "talk", 0, question))
	fmt.Println(second.Append(ctx, "talk", 0, canister.User{Content: canister.Texts("I come too late.")}))
	for info, err := range second.List(ctx, history.Filter{Text: "oslo rain"}) {
		fmt.Println(info.ID, info.Length, info.Last, err)
	}
}

// An answer reaches its waiters in every process, and its parts arrive before it. The
// example needs a server, named by CONSORT_POSTGRES.
func ExampleStore_Listen() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, os.Getenv("CONSORT_POSTGRES"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	for payload, err := range store.Listen(ctx, "talk") {
		if err != nil {
			fmt.Println(err)
			return
		}
		if payload == nil { // from now on it hears
			fmt.Println(store.Notify(ctx, "talk", []byte(`{"text":"It is"}`)))
			continue
		}
		fmt.Println(string(payload))
		return
	}
}

// What cannot be opened is an error at once, and no error tells the password.
func ExampleOpen() {
	_, err := postgres.Open(context.Background(), "postgres://consort:secret@db:port/talks", nil)
	fmt.Println(err)
	// Output:
	// history/postgres: the DSN cannot be read: it must be a URL, postgres://user:password@host:port/database, with special characters of the password escaped as %XX, or pairs such as host=… dbname=…; the files that it names must exist
}
