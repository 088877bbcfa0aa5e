// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// lateWatches is an engine without events that counts the watches after the feed was closed.
type lateWatches struct {
	engine.Engine
	isClosed atomic.Bool
	late     atomic.Int32
}

func (l *lateWatches) Watch(ctx context.Context, _ string, _ int) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		if l.isClosed.Load() {
			l.late.Add(1)
		}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// signalledReads is a store that signals each read of a description.
type signalledReads struct {
	history.Store
	read chan struct{}
}

func (s signalledReads) Info(ctx context.Context, id string) (history.Info, error) {
	s.read <- struct{}{}
	return s.Store.Info(ctx, id)
}

// TestCloseDuringEvents: Close waits also for the watches of readers that come at the same time.
func TestCloseDuringEvents(t *testing.T) {
	const readers = 4
	store := history.NewMemory()
	for i := range readers {
		if err := store.Append(t.Context(), strconv.Itoa(i), 0, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("hello")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2000 {
		e, reads := &lateWatches{}, signalledReads{store, make(chan struct{}, readers)}
		feed := httpapi.NewFeed(e, reads)
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() {
				for _, err := range feed.Events(t.Context(), strconv.Itoa(i), httpapi.Cursor{}) {
					if !errors.Is(err, engine.ErrClosed) {
						t.Error(err)
					}
				}
			})
		}
		<-reads.read // the first reader is about to begin a watch
		feed.Close()
		e.isClosed.Store(true)
		all.Wait()
		if n := e.late.Load(); n > 0 {
			t.Fatalf("%d watches began after Close", n)
		}
	}
}
