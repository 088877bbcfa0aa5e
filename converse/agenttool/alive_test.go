// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/invoker"
)

// slowModel thinks for a while before each exchange, and streams nothing.
type slowModel struct {
	converse.Model
	thinks time.Duration
}

func (m slowModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	time.Sleep(m.thinks)
	return m.Model.Exchange(ctx, request)
}

// A turn of the tool may take longer than a caller waits for progress, with a model and
// tools that report none: the tool reports progress itself, and forwards the reports of
// tools.
func TestToolGivesSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := fn("quiet", func(context.Context, *invoker.Call) (invoker.Output, error) {
			time.Sleep(25 * time.Second)
			return invoker.Output{}, nil
		})
		counts := fn("counts", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			for i := range 3 {
				time.Sleep(20 * time.Second)
				call.Report(invoker.Progress{Done: float64(i + 1), Total: 3})
			}
			return invoker.Output{}, nil
		})
		inner := newRoster(t, quiet, counts)
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			script := conversetest.NewScript(asks(conversetest.Call{Name: "local__quiet"}), asks(conversetest.Call{Name: "local__counts"}), done)
			return converse.New(slowModel{script, 50 * time.Second}, inner, &converse.Options{ID: id}), nil
		}
		outer := newRoster(t, newTool(t, open, nil)) // its calls end after 30 s without a sign of life
		talk := converse.New(conversetest.NewScript(asks(conversetest.Call{Name: "local__converse", Arguments: `{"message":"Go."}`}), done), outer, nil)
		var messages []string
		last, longest := time.Now(), time.Duration(0)
		for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := event.(type) {
			case converse.InvocationProgressed:
				longest, last = max(longest, time.Since(last)), time.Now()
				messages = append(messages, e.Progress.Message)
			case converse.InvocationCompleted:
				if e.Result.Code != "" || e.Duration < 3*time.Minute {
					t.Errorf("after %v: %s %v", e.Duration, e.Result.Code, e.Result.Content)
				}
			}
		}
		if longest > 5*time.Second || !slices.Contains(messages, "local__counts: 2 of 3") {
			t.Errorf("no sign of life for %v; the messages are %q", longest, messages)
		}
		sound(t, talk.History())
	})
}
