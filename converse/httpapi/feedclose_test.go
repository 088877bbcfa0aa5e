// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/openstreams"
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

// blockedInfo is a store whose descriptions cannot be read before the request ends.
type blockedInfo struct {
	history.Store
	begun func()
}

func (b blockedInfo) Info(ctx context.Context, _ string) (history.Info, error) {
	b.begun()
	<-ctx.Done()
	return history.Info{}, ctx.Err()
}

// TestStreamEndsBeforeItBegins: a stream whose token is withdrawn before it has begun is answered with an error, also if
// its conversation is not found yet. A client that has left gets nothing from Serve.
func TestStreamEndsBeforeItBegins(t *testing.T) {
	withdrawn := errors.New("the token is not valid any longer")
	for _, c := range []struct{ isWithdrawn, isRoute bool }{{true, true}, {true, false}, {false, false}} {
		var streams openstreams.Set
		ctx, leave := context.WithCancel(t.Context())
		var fails atomic.Bool
		ctx, remove := streams.Open(ctx, func() error {
			if fails.Load() {
				return withdrawn
			}
			return nil
		})
		feed := httpapi.NewFeed(&lateWatches{}, blockedInfo{history.NewMemory(), func() {
			if !c.isWithdrawn {
				leave()
			}
			fails.Store(true)
			streams.Recheck()
		}})
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/conversations/c/events", nil)
		if c.isRoute {
			httpapi.New(feed, nil).ServeHTTP(w, r)
		} else {
			feed.Serve(w, r, "c", 0)
		}
		want := `{"error":{"code":"unavailable","message":"The request ended before its answer was ready: the token is not valid any longer.","advice":"Send the request again later.","type":"server_error"}}`
		switch got := strings.TrimSpace(w.Body.String()); {
		case c.isWithdrawn && (w.Code != http.StatusServiceUnavailable || got != want):
			t.Errorf("%+v: %d %s", c, w.Code, got)
		case !c.isWithdrawn && got != "":
			t.Errorf("the client has left and gets %s", got)
		}
		remove()
		leave()
		feed.Close()
	}
}
