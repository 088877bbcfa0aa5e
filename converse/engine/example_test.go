// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// A conversation is sent a message and watched until the answer is there.
func Example() {
	ctx := context.Background()
	store := history.NewMemory() // or one that lasts: files, sqlite, postgres
	model := conversetest.NewScript(conversetest.Line{Text: "Take a warm coat."})
	local, err := engine.NewLocal(store, func(ctx context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model, nil, &converse.Options{ID: id, Log: store}), nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = local.Send(ctx, "talk-1", canister.User{
		Head:    canister.Head{ID: "m-1"}, // sent again, it is not said twice
		Content: canister.Texts("What should I wear in Oslo?"),
	})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range local.Watch(ctx, "talk-1", 0) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case engine.Added:
			fmt.Println(event.Position, event.Canister.Kind(), canister.TextOf(canister.ContentOf(event.Canister)))
			continue
		case engine.Delta: // text, as it is written
			continue
		case engine.Ended:
			fmt.Println(event.Turn, event.Reason)
		}
		break
	}
	if err := local.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 user What should I wear in Oslo?
	// 2 assistant Take a warm coat.
	// m-1 answered
}

// Values belong to the conversation, not to a caller: another process may continue it
// without a call.
func ExampleOptions_values() {
	user := invoker.NewTrusted[string]("user")
	type session struct{}
	opts := &engine.Options{
		// The caller that starts a conversation owns it.
		Owner: func(ctx context.Context) (string, error) {
			name, _ := ctx.Value(session{}).(string)
			return name, nil
		},
		// Whom a turn works for, the store knows.
		Values: func(_ context.Context, info history.Info) ([]invoker.Value, error) {
			return []invoker.Value{user.Value(info.Owner)}, nil
		},
	}
	store := history.NewMemory()
	local, err := engine.NewLocal(store, func(ctx context.Context, id string) (*converse.Conversation, error) {
		name, _ := user.From(ctx)
		model := conversetest.NewScript(conversetest.Line{Text: "Hello, " + name + "."})
		return converse.New(model, nil, &converse.Options{ID: id, Log: store}), nil
	}, opts)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.WithValue(context.Background(), session{}, "Ada")
	if err := local.Send(ctx, "talk-1", canister.User{Content: canister.Texts("Good morning.")}); err != nil {
		log.Fatal(err)
	}
	if err := local.Close(ctx); err != nil { // when the turn is done
		log.Fatal(err)
	}
	for c := range store.Read(context.Background(), "talk-1", 1) {
		fmt.Println(canister.TextOf(canister.ContentOf(c)))
	}
	// Output: Hello, Ada.
}

// A watcher is all that an engine of another kind needs for its Watch.
func ExampleWatcher() {
	store, stream := history.NewMemory(), engine.NewStream()
	watcher := engine.Watcher{Log: store, Stream: stream}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := store.Append(ctx, "talk-1", 0, canister.User{Head: canister.Head{ID: "m-1"}, Content: canister.Texts("Hello.")}); err != nil {
		log.Fatal(err)
	}
	for event, err := range watcher.Watch(ctx, "talk-1", 0) {
		if err != nil {
			log.Fatal(err)
		}
		if ended, ok := event.(engine.Ended); ok {
			fmt.Println("ended:", ended.Reason)
			break
		}
		if added, ok := event.(engine.Added); ok && added.Position == 1 { // another caller works elsewhere
			err := store.Append(ctx, "talk-1", 1,
				canister.Assistant{Head: canister.Head{ID: "a-1"}, Content: canister.Texts("Hello."), Finish: canister.FinishStop})
			if err != nil {
				log.Fatal(err)
			}
			if err := stream.Publish(ctx, "talk-1", engine.Delta{Position: 2}); err != nil { // the log has grown
				log.Fatal(err)
			}
		}
	}
	// Output: ended: answered
}
