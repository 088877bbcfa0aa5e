// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/temporal"
	"go.temporal.io/sdk/client"
)

// A worker does the work, here in the same process as the engine that is asked.
func Example() {
	talk := func(c client.Client, store history.Store) error {
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			model := conversetest.NewScript(conversetest.Line{Text: "A raincoat."})
			return converse.New(model, nil, &converse.Options{ID: id, Log: store}), nil
		}
		worker, err := temporal.NewWorker(c, store, open, nil)
		if err != nil {
			return err
		}
		defer worker.Close()
		talks, err := temporal.NewEngine(c, store, &temporal.Options{Open: open})
		if err != nil {
			return err
		}
		ctx := context.Background()
		defer talks.Close(ctx)
		question := canister.User{Head: canister.Head{ID: "m-1"}, Content: canister.Texts("What should I wear in Oslo?")}
		if err := talks.Send(ctx, "talk-1", question); err != nil {
			return err
		}
		for event, err := range talks.Watch(ctx, "talk-1", 0) {
			if err != nil {
				return err
			}
			switch e := event.(type) {
			case engine.Added:
				fmt.Println(e.Position, e.Canister.Kind())
			case engine.Ended:
				return nil
			}
		}
		return nil
	}
	c, err := client.Dial(client.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		return // there is no server
	}
	defer c.Close()
	fmt.Println(talk(c, history.NewMemory()))
}

// What is wrong with the options is an error before anything starts.
func ExampleNewWorker_options() {
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	open := func(context.Context, string) (*converse.Conversation, error) { return nil, nil }
	_, err = temporal.NewWorker(c, history.NewMemory(), open, &temporal.WorkerOptions{Build: "v42"})
	fmt.Println(err)
	// Output:
	// temporal: a worker has Deployment "" and Build "v42": set both or neither
}
