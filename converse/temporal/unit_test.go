// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// No two conversations have one workflow, and no ID is longer than a server takes.
func TestNamesOfWorkflows(t *testing.T) {
	s := starter{prefix: defaultPrefix}
	long := strings.Repeat("ä", history.MaxID/2)
	seen := map[string]string{}
	for _, conversation := range []string{"talk", "Talk", "~talk", long, long[2:], "~" + long[3:], strings.TrimPrefix(s.id(long), defaultPrefix), "a/b", " "} {
		id := s.id(conversation)
		if other, there := seen[id]; there {
			t.Errorf("%q and %q have one workflow %q", conversation, other, id)
		}
		seen[id] = conversation
		if len(id) > 255 {
			t.Errorf("the ID of %q is %d bytes long", conversation, len(id))
		}
	}
	if id := s.id("talk"); id != "consort/talk" {
		t.Errorf("the ID is %q, want one that shows the conversation", id)
	}
}

func TestWhatAServerIsToldOfAFailure(t *testing.T) {
	long := strings.Repeat("ö", maxFailure)
	tests := []struct {
		name  string
		err   error
		kind  string
		final bool
	}{
		{"a model that is busy", &converse.ModelError{Message: "busy", Status: 429, Retryable: true}, "model", false},
		{"a model that refuses", fmt.Errorf("so: %w", &converse.ModelError{Message: "no such model", Status: 404}), "model", true},
		{"a conflict", &history.ConflictError{Conversation: "talk"}, "conflict", false},
		{"a damaged history", &history.CorruptError{Conversation: "talk", Err: errors.New("bit")}, "other", true},
		{"a newer history", fmt.Errorf("%w: 9", canister.ErrNewer), "other", true},
		{"a lost lease", suspended(errors.New("gone")), "suspended", false},
		{"a database that is away", errors.New("connection refused"), "other", false},
		{"what the program says itself", fmt.Errorf("open: %w", temporal.NewNonRetryableApplicationError("bad configuration", "own", nil)), "own", true},
		{"a long story", errors.New(long), "other", false},
		{"no UTF-8", errors.New("\xff"), "other", false},
	}
	for _, tt := range tests {
		told := failed(tt.err)
		if told.Type() != tt.kind || told.NonRetryable() != tt.final {
			t.Errorf("%s: type %q, final %v; want %q, %v", tt.name, told.Type(), told.NonRetryable(), tt.kind, tt.final)
		}
		if m := told.Message(); len(m) > maxFailure+10 || !utf8.ValidString(m) {
			t.Errorf("%s: a text of %d bytes, valid %v", tt.name, len(m), utf8.ValidString(m))
		}
	}
}

func TestBadOptions(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	open := func(context.Context, string) (*converse.Conversation, error) { return nil, nil }
	store := history.NewMemory()
	for name, opts := range map[string]*WorkerOptions{
		"negative": {Heartbeat: -1}, "a deployment without a build": {Deployment: "d"}, "a build without a deployment": {Build: "b"},
	} {
		if _, err := NewWorker(c, store, open, opts); err == nil || !strings.HasPrefix(err.Error(), "temporal: ") {
			t.Errorf("%s: %v, want an error", name, err)
		}
	}
	if _, err := NewWorker(c, store, nil, nil); err == nil {
		t.Error("a worker without a function that opens conversations")
	}
	if _, err := NewEngine(c, nil, nil); err == nil {
		t.Error("an engine without a store")
	}
	if _, err := NewEngine(c, store, &Options{Poll: -1}); err == nil {
		t.Error("an engine with a negative Poll")
	}
}

// Those who send to one conversation do so in their order; who gives up leaves
// the line, and other conversations are not held up.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		first, err := l.queue(t.Context(), t.Context(), "talk")
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		var order []int
		done := make(chan bool)
		for n := range 3 {
			ctx := t.Context()
			if n == 1 {
				ctx = gone
			}
			go func() {
				if next, err := l.queue(ctx, t.Context(), "talk"); err == nil {
					order = append(order, n)
					next()
				}
				done <- true
			}()
			synctest.Wait()
		}
		other, err := l.queue(t.Context(), t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		other()
		cancel()
		<-done
		first()
		<-done
		<-done
		if fmt.Sprint(order) != "[0 2]" || len(l.of) != 0 {
			t.Errorf("the order was %v, and %d lines are left; want [0 2] and none", order, len(l.of))
		}
	})
}

// bus is a Notifier in memory, with one listener.
type bus struct{ payloads chan []byte }

func (b bus) Notify(_ context.Context, _ string, payload []byte) error {
	b.payloads <- payload
	return nil
}

func (b bus) Listen(ctx context.Context, _ string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if !yield(nil, nil) {
			return
		}
		for {
			select {
			case p := <-b.payloads:
				if !yield(p, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

func TestStreamBetweenMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := NewStream(bus{make(chan []byte, 10)})
		deltas, err := s.Subscribe(ctx, "talk")
		if err != nil {
			t.Fatal(err)
		}
		sent := engine.Delta{Turn: "m1", Attempt: time.Now().UnixMilli(), Index: 3, Position: 7, Event: []byte(`{"event":"text_delta","text":"Hi"}`)}
		if err := s.Publish(ctx, "talk", sent); err != nil {
			t.Fatal(err)
		}
		if hint := <-deltas; hint.Event != nil || hint.Ended != nil || hint.Missed != 0 {
			t.Errorf("the first is %+v, want a hint to look at the log", hint)
		}
		if got := <-deltas; got.Text() != "Hi" || got.Attempt != sent.Attempt || got.Position != 7 || got.Index != 3 {
			t.Errorf("got %+v, want %+v", got, sent)
		}
		between := bus{make(chan []byte, 1)}
		again, err := NewStream(between).Subscribe(ctx, "talk")
		if err != nil {
			t.Fatal(err)
		}
		<-again
		between.payloads <- nil // something may have been missed
		if got := <-again; got.Event != nil || got.Missed != 1 {
			t.Errorf("got %+v, want a delta that says that one was missed", got)
		}
		cancel()
		for range again { // until it is closed
		}
		for range deltas { // until it is closed
		}
	})
}

func TestTheSDKsLines(t *testing.T) {
	core, seen := observer.New(zapcore.InfoLevel)
	logger := NewLogger(zap.New(core))
	logger.Debug("too quiet")
	logger.Warn("Something", "Error", errors.New("broken"), "odd")
	lines := seen.All()
	if len(lines) != 1 || lines[0].ContextMap()["said"] != "Something" || lines[0].ContextMap()["Error"] != "broken" ||
		lines[0].ContextMap()["event"] != "temporal.sdk.said" {
		t.Errorf("the lines are %+v", lines)
	}
}

// A function of the program that panics or returns another conversation, or none, is an error of the Send
// that calls it, and does not end the process. A Watch ends with the error of a panic.
func TestFunctionsOfTheProgramThatPanic(t *testing.T) {
	for name, open := range map[string]converse.OpenFunc{
		"panics": func(context.Context, string) (*converse.Conversation, error) { panic("the function panics") },
		"none":   func(context.Context, string) (*converse.Conversation, error) { return nil, nil },
		"another": func(context.Context, string) (*converse.Conversation, error) {
			return converse.New(nil, nil, &converse.Options{ID: "another"}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := history.NewMemory()
				if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")}); err != nil {
					t.Fatal(err)
				}
				calls := 0
				e, err := NewEngine(new(lastWorkflow), store, &Options{Open: func(ctx context.Context, id string) (*converse.Conversation, error) {
					calls++
					return open(ctx, id)
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var end error
				for _, err := range e.Watch(ctx, "talk", 0) {
					end = err
				}
				const panicked = "temporal: a function of the program panicked: the function panics"
				if name == "panics" && end.Error() != panicked || name != "panics" && !errors.Is(end, context.DeadlineExceeded) {
					t.Errorf("Watch ends with %v", end)
				}
				if calls == 0 {
					t.Error("Watch has not opened the conversation")
				}
				message := canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")}
				if err := e.Send(t.Context(), "new", message); err == nil {
					t.Error("Send to a conversation that cannot be opened returns no error")
				}
				e.opts.Owner = func(context.Context) (string, error) { panic("the function panics") }
				if err := e.Send(t.Context(), "talk", message); err == nil || !strings.HasSuffix(err.Error(), ": "+panicked) {
					t.Errorf("Send without an owner returns %v", err)
				}
			})
		})
	}
}
