// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// A program serves its conversations, and a client begins one.
func Example() {
	store := history.NewMemory() // or one that lasts: files, sqlite, postgres
	model := conversetest.NewScript(conversetest.Line{Text: "Take a warm coat."})
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model, nil, &converse.Options{ID: id, Log: store}), nil
	}
	local, err := engine.NewLocal(store, open, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close(context.Background())
	feed := httpapi.NewFeed(local, store)
	defer feed.Close()
	server := httptest.NewServer(httpapi.New(feed, &httpapi.Options{Open: open}))
	defer server.Close()

	message := strings.NewReader(`{"message":"What should I wear in Oslo?"}`)
	created, err := http.Post(server.URL+"/api/conversations", "application/json", message)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, created.Body)
	_ = created.Body.Close()
	id := strings.TrimPrefix(created.Header.Get("Location"), "/api/conversations/")

	// Programs in the same process read the events from the feed.
	for event, err := range feed.Events(context.Background(), id, httpapi.Cursor{}) {
		if err != nil {
			log.Fatal(err)
		}
		switch e := event.Event.(type) {
		case engine.Added:
			fmt.Println(event.ID, canister.TextOf(canister.ContentOf(e.Canister)))
		case engine.Ended:
			fmt.Println(event.ID, e.Reason)
			return
		}
	}
	// Output:
	// 1 What should I wear in Oslo?
	// 2 Take a warm coat.
	// 2-end answered
}
