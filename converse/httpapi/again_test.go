// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/invoker"
)

// refusing returns a change of the options that refuses messages while refused is set.
func refusing(refused *bool) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			if *refused {
				return &invoker.Failure{Code: invoker.Unavailable, Message: "Not now.", RetryAfter: 300 * time.Millisecond}
			}
			return enter(ctx)
		}
	}
}

// TestRetryAfter: a client is told to wait at least as long as it has to.
func TestRetryAfter(t *testing.T) {
	refused := true
	s := serve(t, echo, nil, refusing(&refused))
	got := s.want(http.StatusTooManyRequests, "POST", "/api/conversations", object{"message": "hello"})
	if after := got.header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q", after)
	}
}

// TestRunAfterAFailure: a run that sends the same message again gets the answer, and not the
// failure of the time before.
func TestRunAfterAFailure(t *testing.T) {
	var asked atomic.Int64
	fails := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if asked.Add(1) == 1 {
			yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
			return
		}
		echo(ctx, request, yield)
	}
	s := serve(t, fails, nil, nil)
	input := object{"threadId": "t", "messages": []object{{"id": "m", "role": "user", "content": "hello"}}}
	if _, _, last := s.run(input); last["type"] != "RUN_ERROR" || last["code"] != "turn_failed" {
		t.Fatalf("the first run ended with %v", last)
	}
	for n := range 2 { // the second time, the log has the answer already
		if types, text, last := s.run(input); text != "You said: hello" || last["type"] != "RUN_FINISHED" {
			t.Errorf("run %d: the text is %q, the events %q, the last %v", n+2, text, types, last)
		}
	}
}

// TestFailureWhileARunIsAdmitted: a run that sends its message again does not get a failure that came before it was sent.
func TestFailureWhileARunIsAdmitted(t *testing.T) {
	var s *served
	var asked atomic.Int64
	begun, fail, runs := make(chan struct{}), make(chan struct{}), 0
	s = serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if asked.Add(1) == 1 {
			close(begun)
			<-fail
			yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
			return
		}
		echo(ctx, request, yield)
	}, nil, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			if runs++; runs == 2 {
				close(fail)
				s.failure(entry.Conversation)
			}
			return enter(ctx)
		}
	})
	body := object{"threadId": "t", "runId": "r", "messages": []object{{"id": "m", "role": "user", "content": "hello"}}}
	first := s.begin(t.Context(), "/agui", body)
	<-begun
	if got := s.want(http.StatusOK, "POST", "/agui", body); !strings.Contains(got.text, "RUN_FINISHED") {
		t.Errorf("the second run ended with %s", got.text)
	}
	<-first.done
}

// TestPictureInAThread: a thread with a picture goes on.
func TestPictureInAThread(t *testing.T) {
	s := serve(t, echo, nil, nil)
	picture := object{"type": "image", "source": object{"type": "data", "value": "aGVsbG8=", "mimeType": "image/png"}}
	messages := []object{{"id": "m1", "role": "user", "content": []object{{"type": "text", "text": "look"}, picture}}}
	if _, text, last := s.run(object{"threadId": "t", "messages": messages}); text != "You said: look" {
		t.Fatalf("the text is %q, the last event %v", text, last)
	}
	unknown := object{"id": "m0", "role": "user", "content": []object{{"type": "video", "source": object{}}}}
	messages = append([]object{unknown}, append(messages, object{"id": "a", "role": "assistant", "content": "You said: look"}, object{"id": "m2", "role": "user", "content": "more"})...)
	if _, text, last := s.run(object{"threadId": "t", "messages": messages}); text != "You said: more" {
		t.Errorf("the text is %q, the last event %v", text, last)
	}
	for info := range s.store.List(t.Context(), history.Filter{}) {
		if said := ofKind[canister.User](s, info.ID); len(said) != 2 || len(said[0].Content) != 2 {
			t.Errorf("the messages are %v", said)
		}
	}
}

// TestEndOfAnAttemptComesOnce: a reader gets the end of an attempt that failed once, although
// it has read deltas of the next attempt before the message is complete.
func TestEndOfAnAttemptComesOnce(t *testing.T) {
	var asked atomic.Int64
	release := make(chan struct{})
	read := release
	fails := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		yield(converse.Delta{Text: "You "}, nil)
		if asked.Add(1) == 1 {
			yield(nil, &converse.ModelError{Status: http.StatusServiceUnavailable, Message: "later", Retryable: true})
			return
		}
		select {
		case <-release:
			say(request, "You said", yield)
		case <-ctx.Done():
		}
	}
	s := serve(t, fails, nil, nil)
	id := s.create("hello")
	failures := 0
	for event, err := range s.feed.Events(t.Context(), id, httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		ended, isEnd := event.Event.(engine.Ended)
		switch {
		case isEnd && ended.Error != "":
			failures++
		case isEnd:
			if failures != 1 {
				t.Errorf("the end of the first attempt came %d times", failures)
			}
			return
		case event.Name == "delta" && failures > 0 && read != nil:
			close(read)
			read = nil
		}
	}
}

// TestFailuresWithTheSameText: two attempts that fail with the same text at one position of the
// log are two events, and a reader that comes back after one of them gets the others once.
func TestFailuresWithTheSameText(t *testing.T) {
	var isWell atomic.Bool
	refuses := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if isWell.Load() {
			echo(ctx, request, yield)
			return
		}
		yield(nil, &converse.ModelError{Status: http.StatusBadRequest, Message: "no"})
	}
	s := serve(t, refuses, nil, nil)
	form := s.want(http.StatusCreated, "POST", "/api/conversations", object{"message": "hello", "id": "m"}).form
	at := "/api/conversations/" + form["id"].(string)
	again := func() { s.want(http.StatusAccepted, "POST", at+"/messages", object{"message": "hello", "id": "m"}) }
	var failures []string
	read := func(last string, do func(streamed) bool) {
		t.Helper()
		if err := readStream(s.request("GET", at+"/events", nil, "Last-Event-ID", last), do); err != nil {
			t.Fatal(err)
		}
	}
	read("", func(e streamed) bool {
		if e.name == "ended" {
			if failures = append(failures, e.id); len(failures) < 3 {
				again()
			}
		}
		return len(failures) < 3
	})
	if failures[0] == failures[1] || failures[1] == failures[2] {
		t.Fatalf("the IDs of the failures are %q", failures)
	}
	late := httpapi.NewFeed(s.engine, s.store) // it has the last failure from the engine
	defer late.Close()
	for event, err := range late.Events(t.Context(), form["id"].(string), httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Name == "ended" {
			if id := event.ID.String(); id != failures[2] {
				t.Errorf("the last failure is %s for a late reader, and was %s", id, failures[2])
			}
			break
		}
	}
	for i, last := range failures[:2] {
		read(last, func(e streamed) bool {
			if e.name == "ended" {
				i++
			}
			if e.name == "ended" && e.id != failures[i] || e.name == "canister" {
				t.Errorf("after %s came %v", last, e)
			}
			return i < 2
		})
	}
	isWell.Store(true)
	again()
	read(failures[2], func(e streamed) bool {
		if strings.Contains(e.data, `"error"`) {
			t.Errorf("after the last failure came %v", e)
		}
		return e.name != "ended"
	})
}

// twice is an engine whose watches report a failure before the stream, which then has the attempt and
// the failure too.
type twice struct{ engine.Engine }

func (twice) Watch(ctx context.Context, _ string, _ int) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		for _, event := range []engine.Event{
			engine.Added{Position: 1, Canister: canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("hello")}},
			engine.Ended{Turn: "m", Error: "no", Attempt: 1},
			engine.Delta{Turn: "m", Attempt: 1, Position: 1, Event: json.RawMessage(`{"event":"text_delta","text":"You "}`)},
			engine.Ended{Turn: "m", Error: "no", Attempt: 1},
			engine.Ended{Turn: "m", Error: "no", Attempt: 2},
		} {
			if !yield(event, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// TestFailureThatIsReportedTwice: a reader gets the failure of an attempt once, although the watch
// has it twice.
func TestFailureThatIsReportedTwice(t *testing.T) {
	store := history.NewMemory()
	if err := store.Append(t.Context(), "c", 0, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("hello")}); err != nil {
		t.Fatal(err)
	}
	feed := httpapi.NewFeed(twice{}, store)
	defer feed.Close()
	var attempts []int64
	for event, err := range feed.Events(t.Context(), "c", httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Name == "delta" {
			t.Errorf("a delta of an attempt that has failed: %s", event.Data)
		}
		if ended, is := event.Event.(engine.Ended); is {
			if attempts = append(attempts, ended.Attempt); ended.Attempt == 2 {
				break
			}
		}
	}
	if !slices.Equal(attempts, []int64{1, 2}) {
		t.Errorf("the failures are of the attempts %d", attempts)
	}
}

// TestRunAgainAfterItsTopic: a run that sends its message again gets the new end also if the feed has dropped the
// events of the conversation meanwhile.
func TestRunAgainAfterItsTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, store := engineOf(t, func(_ context.Context, _ *converse.Request, yield func(converse.ModelEvent, error) bool) {
			yield(nil, &budget.ReachedError{})
		})
		feed := httpapi.NewFeed(local, store)
		defer feed.Close()
		slow := time.Duration(0)
		handler := httpapi.New(feed, &httpapi.Options{Admit: func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			time.Sleep(slow)
			return enter(ctx)
		}})
		for n := range 6 {
			if n == 5 {
				slow = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			body := `{"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hello"}]}`
			r, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/agui", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			w := &recorded{header: http.Header{}}
			if handler.ServeHTTP(w, r); !strings.Contains(w.body, "RUN_FINISHED") {
				t.Errorf("run %d ended with %q", n+1, w.body)
			}
			cancel()
		}
	})
}
