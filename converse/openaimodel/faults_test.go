// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// end is how an exchange ends that a fault has struck.
type end string

const (
	again end = "again" // tried again, with an event, and all is well
	lost  end = "lost"  // an error that says that trying again can help
	final end = "final" // an error that says that it cannot
)

// fault is what goes wrong with one exchange. There are two moments: before the
// answer, and in the middle of it, after deltas and half of a call if it is
// streamed, and after half of the JSON if it comes whole.
type fault struct {
	name           string
	before, middle openaiserver.Reply // nil where there is no such moment
	refused        bool               // the connection, in place of before
	said           string             // an error object, in place of middle
	timeout        time.Duration      // of the exchange's waits for the server; 0 means long
	wait           time.Duration      // that the event tells; 0 means any
	code           string             // of the error
	// What comes of it before the answer, in the middle of a stream, and in
	// the middle of a whole answer.
	start, stream, whole end
}

const (
	halfStream = `data: {"choices":[{"delta":{"content":"Let me "}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"local__count","arguments":"{"}}]}}]}

`
	halfWhole = `{"choices":[{"message":{"content":"Let me `
)

// faults are those of the model's side. What an exchange has streamed cannot be
// taken back, so that only one that has said nothing is tried again unasked.
func faults() []fault {
	broken := func(end openaiserver.End) openaiserver.Reply { return openaiserver.Replay{End: end} }
	wire := func(end openaiserver.End) openaiserver.Reply { return openaiserver.Replay{Wire: true, End: end} }
	said := func(text string) openaiserver.Reply { return openaiserver.Recording([]byte(text)) }
	const patience = 3 * time.Second // far more than an answer takes
	return []fault{
		{name: "connection refused", refused: true, start: again},
		{name: "closed before the head", before: wire(openaiserver.EndClean), start: again},
		{name: "reset before the head", before: wire(openaiserver.EndReset), start: again},
		{name: "no head", before: openaiserver.Replay{Delay: time.Minute}, timeout: patience, start: lost},
		{name: "ended", before: broken(openaiserver.EndClean), middle: broken(openaiserver.EndClean), start: again, stream: lost, whole: again},
		{name: "closed", before: broken(openaiserver.EndCut), middle: broken(openaiserver.EndCut), start: again, stream: lost, whole: again},
		{name: "reset", before: broken(openaiserver.EndReset), middle: broken(openaiserver.EndReset), start: again, stream: lost, whole: again},
		{
			name: "stalled", before: broken(openaiserver.EndStall), middle: broken(openaiserver.EndStall), timeout: patience,
			start: lost, stream: lost, whole: lost,
		},
		{name: "invalid JSON", before: said("{]"), middle: said("data: {]\n\n"), start: again, stream: lost, whole: again},
		{name: "invalid event", before: said("data: {]\n\n"), start: again},
		{
			name: "429 with Retry-After", before: openaiserver.RateLimited(time.Second), wait: time.Second, start: again,
			said: `{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}`, code: "rate_limit_exceeded", stream: lost, whole: again,
		},
		{
			name: "500", before: openaiserver.ServerError(), start: again,
			said: `{"error":{"message":"Oh no.","type":"server_error"}}`, code: "server_error", stream: lost, whole: again,
		},
		{
			name: "context length", before: openaiserver.ContextLength(), code: "context_length_exceeded", start: final,
			said: `{"error":{"message":"Too long.","code":"context_length_exceeded"}}`, stream: final, whole: final,
		},
	}
}

// TestFaults holds a conversation with a tool over each fault, over sockets, in
// its first exchange and in the one after the call.
func TestFaults(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	t.Run("group", func(t *testing.T) {
		var group sync.WaitGroup // in place of t.Parallel: most of it is waiting
		for _, f := range faults() {
			for _, stream := range []bool{true, false} {
				for _, middle := range []bool{false, true} {
					if middle && f.middle == nil && f.said == "" {
						continue
					}
					for step := range 2 {
						name := fmt.Sprintf("%s/stream=%v/middle=%v/step=%d", f.name, stream, middle, step)
						group.Go(func() {
							t.Run(name, func(t *testing.T) { strike(t, f, stream, middle, step) })
						})
					}
				}
			}
		}
		group.Wait()
	})
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			var stacks [1 << 16]byte
			t.Fatalf("%d goroutines, %d at the start:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks[:], true)])
		}
	}
}

// strike lets the fault happen in one exchange of a conversation of two, and
// checks what comes of it, and that the conversation can go on.
func strike(t *testing.T, f fault, stream, middle bool, step int) {
	want, reply, half := f.start, f.before, ""
	switch {
	case middle && stream:
		want, reply, half = f.stream, f.inTheMiddle(halfStream, "event: error\ndata: "+f.said+"\n\n"), "Let me "
	case middle:
		want, reply = f.whole, f.inTheMiddle(halfWhole, "")
	}
	h := newFaultyTalk(t, f, stream, step, reply)
	saw := h.collect(h.talk.Send(t.Context(), canister.Text("Go.")))
	texts := []string{"Let me look.", "Done."}
	if want == again {
		if saw.err != nil || saw.text != "Let me look.Done." || len(saw.retries) != 1 {
			t.Errorf("err %v, text %q, %d retries", saw.err, saw.text, len(saw.retries))
		} else if wait := saw.retries[0].Wait; !middle && f.wait != 0 && wait != f.wait {
			t.Errorf("waits %v, want %v", wait, f.wait)
		}
	} else {
		var failed *converse.ModelError
		if !errors.As(saw.err, &failed) || failed.Retryable != (want == lost) || failed.Code != f.code || len(saw.retries) != 0 {
			t.Errorf("err %+v, %d retries", saw.err, len(saw.retries))
		}
		if said := strings.Join(texts[:step], "") + half; saw.text != said {
			t.Errorf("streamed %q, want %q", saw.text, said)
		}
		if n := len(h.talk.History()); n != 1+3*step { // none of half an exchange
			t.Errorf("%d canisters: %+v", n, h.talk.History())
		}
		if saw := h.collect(h.talk.Continue(t.Context())); saw.err != nil || saw.text != strings.Join(texts[step:], "") {
			t.Errorf("after it: err %v, text %q", saw.err, saw.text)
		}
	}
	h.check(t)
}

// inTheMiddle returns the half of an answer and what breaks it: an error as an
// event, or as the whole body.
func (f fault) inTheMiddle(half, event string) openaiserver.Reply {
	switch {
	case f.said != "" && event != "":
		return openaiserver.Recording([]byte(half + event))
	case f.said != "":
		return openaiserver.Recording([]byte(f.said))
	}
	replay := f.middle.(openaiserver.Replay)
	replay.Parts = append([]openaiserver.Part{{Data: []byte(half)}}, replay.Parts...)
	return replay
}

// faultyTalk is a conversation with a server that fails once.
type faultyTalk struct {
	talk   *converse.Conversation
	server *openaiserver.Server
	calls  atomic.Int32 // of the tool
}

func newFaultyTalk(t *testing.T, f fault, stream bool, step int, reply openaiserver.Reply) *faultyTalk {
	h := &faultyTalk{}
	steps := []openaiserver.Step{
		{Reply: openaiserver.Message{Text: "Let me look.", Calls: []openaiserver.Call{{Name: "local__count"}}}},
		{Reply: openaiserver.Message{Text: "Done."}},
	}
	if reply != nil {
		steps[step].Before = []openaiserver.Reply{reply}
	}
	h.server = start(t, openaiserver.Script{Steps: steps}, nil)
	options := openaimodel.Options{NoStream: !stream, MaxRetries: 1}
	if f.refused {
		options.HTTPClient = refuse(int32(step))
	}
	count, err := invoker.New("count", "Count the calls.", func(context.Context, struct{}) (int32, error) { return h.calls.Add(1), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", count))
	if err != nil {
		t.Fatal(err)
	}
	var model converse.Model = newModel(t, h.server.URL(), options)
	if f.timeout != 0 {
		options.ResponseTimeout, options.IdleTimeout = f.timeout, f.timeout
		model = &changing{Model: model, other: newModel(t, h.server.URL(), options), at: step}
	}
	h.talk = converse.New(model, roster, &converse.Options{OwnRoster: true})
	t.Cleanup(func() {
		if err := h.talk.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// changing is another model for one of its exchanges.
type changing struct {
	converse.Model
	other converse.Model
	at, n int
}

func (c *changing) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	c.n++
	if c.n == c.at+1 {
		return c.other.Exchange(ctx, request)
	}
	return c.Model.Exchange(ctx, request)
}

// refuse returns a client whose dial number n, from 0, goes where nobody listens: to a
// port that no other test can be given. Each request dials.
func refuse(n int32) *http.Client {
	var dials atomic.Int32
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == n+1 {
			address = "127.0.0.1:1"
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}
}

// seen is what the events of some work say.
type seen struct {
	text    string
	retries []converse.ExchangeRetried
	err     error
}

func (h *faultyTalk) collect(events iter.Seq2[converse.Event, error]) (saw seen) {
	for event, err := range events {
		switch event := event.(type) {
		case converse.TextDelta:
			saw.text += event.Text
		case converse.ExchangeRetried:
			saw.retries = append(saw.retries, event)
		}
		saw.err = err
	}
	return saw
}

// check holds the conversation, which is at its end, against the script.
func (h *faultyTalk) check(t *testing.T) {
	t.Helper()
	if n := h.calls.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	history := h.talk.History()
	if problems := sequence.Check(history); problems != nil {
		t.Error(problems)
	}
	var kinds []string
	for _, c := range history {
		kinds = append(kinds, string(c.Kind()))
	}
	if got, want := strings.Join(kinds, " "), "user assistant invocation result assistant"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	if faults := h.server.Faults(); faults != nil {
		t.Error(faults)
	}
}

// TestCancelAnywhere ends a turn at each of its events, by its context and by
// leaving the loop. The history is sound, and the conversation goes on.
func TestCancelAnywhere(t *testing.T) {
	for _, leave := range []bool{true, false} {
		for at := 1; ; at++ {
			h := newFaultyTalk(t, fault{}, true, 0, openaiserver.Failure{Header: http.Header{"Retry-After-Ms": {"1"}}})
			ctx, cancel := context.WithCancel(t.Context())
			n, whole := 0, false
			for event, err := range h.talk.Send(ctx, canister.Text("Go.")) {
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(at, err)
				}
				_, whole = event.(converse.TurnCompleted)
				if n++; n == at {
					if leave {
						break
					}
					cancel()
				}
			}
			cancel()
			if problems := sequence.Check(h.talk.History()); problems != nil {
				t.Errorf("left %v at %d: %v", leave, at, problems)
			}
			if saw := h.collect(h.talk.Continue(t.Context())); saw.err != nil {
				t.Errorf("left %v at %d: %v", leave, at, saw.err)
			}
			if calls, faults := h.calls.Load(), h.server.Faults(); calls > 1 || faults != nil {
				t.Errorf("left %v at %d: %d calls, %v", leave, at, calls, faults)
			}
			if whole && n < at {
				break
			}
		}
	}
}

// TestAnyAnswerGoesBack: whatever a model says, the history with it is one that
// a strict server takes. The server checks each request.
func TestAnyAnswerGoesBack(t *testing.T) {
	arguments := []string{`{}`, `not JSON`, `[1]`, `"text"`, `{"a":`, "{\"a\":\"\x00\"}", `null`, ` `}
	names := []string{"files.read file", "", strings.Repeat("long", 40), "größe", "local__nothing", "local__nothing\n", "<|x|>", "local__nothing"}
	var steps []openaiserver.Step
	for i := range names {
		steps = append(steps, openaiserver.Step{Reply: openaiserver.Message{Calls: []openaiserver.Call{
			{ID: "D681PevKs", Name: names[i], Arguments: arguments[i]}, {ID: "D681PevKs", Name: "local__nothing", Arguments: arguments[i]}, {Name: names[i]},
		}}})
	}
	empty := openaiserver.Step{Reply: openaiserver.Message{Finish: "length"}}
	steps = append(steps, empty, openaiserver.Step{Reply: openaiserver.Message{Refusal: "No."}}, openaiserver.Step{Reply: openaiserver.Message{Text: "Done."}})
	for _, noStream := range []bool{false, true} {
		server := start(t, openaiserver.Script{Steps: steps}, nil)
		nothing, err := invoker.New("nothing", "Says nothing.", func(context.Context, struct{}) (any, error) { return nil, nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		roster, err := ensemble.NewRoster(ensemble.Local("local", nothing))
		if err != nil {
			t.Fatal(err)
		}
		model := newModel(t, server.URL(), openaimodel.Options{NoStream: noStream, MaxRetries: -1})
		talk := converse.New(model, roster, &converse.Options{OwnRoster: true, Instructions: "Be odd."})
		for range 3 {
			if turn, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil {
				t.Fatalf("%v after %+v", err, turn)
			}
			late := canister.Document{Title: "Late", Content: canister.Texts("Words.")}
			if err := talk.Add(t.Context(), canister.Supervisor{Content: canister.Texts("Go on.")}, late); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(server.Requests()); n != len(steps) || server.Faults() != nil {
			t.Errorf("%d requests, want %d: %v", n, len(steps), server.Faults())
		}
		if err := talk.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestManyConversations share one model, its tools and its connections.
func TestManyConversations(t *testing.T) {
	const many = 500
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "local__echo", Arguments: `{"n":1}`}, {Name: "local__echo", Arguments: `{"n":2}`}}}},
		{Reply: openaiserver.Message{Text: "Done."}},
	}}, nil)
	type number struct {
		N int `json:"n"`
	}
	echo, err := invoker.New("echo", "Echo.", func(_ context.Context, in number) (number, error) { return in, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", echo))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	model := newModel(t, server.URL(), openaimodel.Options{})
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			turn, err := converse.New(model, roster, nil).Ask(t.Context(), canister.Text("Go."))
			if err != nil || turn.Text() != "Done." || turn.Invocations != 2 {
				t.Errorf("%+v, %v", turn, err)
			}
		})
	}
	all.Wait()
	if faults := server.Faults(); faults != nil {
		t.Error(faults)
	}
}
