// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/invoker"
)

// thinking is a model that thinks for a while before each exchange, and streams nothing.
type thinking struct {
	converse.Model
	long time.Duration
}

func (m thinking) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	time.Sleep(m.long)
	return m.Model.Exchange(ctx, request)
}

// TestServedTurnsReportProgress: a caller of the tool converse receives progress while
// the model works, and the reports of its tools; without a progress token nothing is
// computed.
func TestServedTurnsReportProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, err := invoker.New("counts", "Counts.", func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 3 {
				time.Sleep(20 * time.Second)
				invoker.CallFrom(ctx).Report(invoker.Progress{Done: float64(i + 1), Message: "counting"})
			}
			return "3", nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		roster, err := ensemble.NewRoster(ensemble.Local("local", counts))
		if err != nil {
			t.Fatal(err)
		}
		defer roster.Close(context.Background())
		store, owner := histories.ClientsOnly{Store: history.NewMemory()}, config.OwnerPrefix+"ada"
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			script := conversetest.NewScript(conversetest.Line{Text: "Three."})
			if info, err := store.Info(t.Context(), id); err != nil || info.Length < 2 {
				script = conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{{
					Name: "local__counts", Arguments: "{}",
				}}}, conversetest.Line{Text: "Three."})
			}
			return converse.New(thinking{script, time.Minute}, roster, &converse.Options{ID: id, Log: store}), nil
		}
		carries, err := engine.NewLocal(store, open, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer carries.Close(context.Background())
		feed := httpapi.NewFeed(carries, store)
		defer feed.Close()
		served := &conversations{
			engine: carries, feed: feed, store: store, open: open, ending: context.Background(),
			owner: func(context.Context) (string, error) { return owner, nil }, withSender: unmarked,
		}
		tool, err := served.tool()
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var messages []string
		last, longest, done := time.Now(), time.Duration(0), 0.0
		call := &invoker.Call{Arguments: json.RawMessage(`{"message":"Count."}`), Progress: func(p invoker.Progress) {
			mu.Lock()
			defer mu.Unlock()
			longest, last = max(longest, time.Since(last)), time.Now()
			if messages = append(messages, p.Message); p.Done <= done {
				t.Errorf("the progress goes from %v to %v", done, p.Done)
			}
			done = p.Done
		}}
		begun := time.Now()
		if output, err := tool.Invoke(t.Context(), call); err != nil || time.Since(begun) < 3*time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(begun), output, err)
		}
		if longest > 5*time.Second || !slices.Contains(messages, "local__counts: counting") {
			t.Errorf("no sign of life for %v; the messages are %q", longest, messages)
		}
		call.Progress = nil
		if _, err := tool.Invoke(t.Context(), call); err != nil {
			t.Error(err)
		}
	})
}
