// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// TestLargeCanisters: a conversation with readers keeps a bounded number of bytes, and its readers get all of its canisters.
func TestLargeCanisters(t *testing.T) {
	store, large := history.NewMemory(), strings.Repeat("x", 1<<20)
	s := serveStore(t, store, nil, echo, nil, nil)
	add := func(from, n int) {
		for i := range n {
			one := canister.Document{Head: canister.Head{ID: "d" + strings.Repeat("i", from+i)}, Content: canister.Texts(large)}
			if err := store.Append(t.Context(), "c", from+i, one); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen, most := 0, 0
	for event, err := range s.feed.Events(ctx, "c", httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if added, is := event.Event.(engine.Added); is {
			if seen++; added.Position != seen {
				t.Fatalf("position %d came after %d canisters", added.Position, seen-1)
			}
		}
		if seen == 1 {
			add(1, 30)
		}
		if most = max(most, httpapi.KeptBytes(s.feed)); seen == 31 {
			break
		}
	}
	if most > 10<<20 {
		t.Errorf("it kept %d bytes", most)
	}
}
