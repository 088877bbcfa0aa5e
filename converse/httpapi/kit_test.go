// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// model is a model that answers as a function says.
type model func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool)

func (m model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) { m(ctx, request, yield) }
}

// lastText returns the text of the last canister of a request.
func lastText(request *converse.Request) string {
	last := request.History[len(request.History)-1]
	return canister.TextOf(canister.ContentOf(last))
}

// say streams a text in pieces and replies with it.
func say(request *converse.Request, text string, yield func(converse.ModelEvent, error) bool) {
	for piece := range strings.SplitAfterSeq(text, " ") {
		if !yield(converse.Delta{Text: piece}, nil) {
			return
		}
	}
	reply := canister.Assistant{
		Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(text), Finish: canister.FinishStop, Model: "test",
		Usage: &canister.Usage{Input: 10, Output: 5},
	}
	yield(converse.Reply{Message: reply}, nil)
}

// call replies with a call of a tool.
func call(request *converse.Request, text, tool, arguments string, yield func(converse.ModelEvent, error) bool) {
	message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishInvocations, Model: "test"}
	if text != "" {
		message.Content = canister.Texts(text)
		if !yield(converse.Delta{Text: text}, nil) {
			return
		}
	}
	yield(converse.Reply{Message: message, Invocations: []canister.Invocation{
		{Head: canister.Head{ID: request.NewID()}, Message: message.ID, CallID: "call_1", Name: tool, Arguments: arguments},
	}}, nil)
}

// echo repeats the message. "call: X" calls the tool local__do with X first, and "block"
// writes a little and then waits for the end of the turn.
func echo(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
	switch text := lastText(request); {
	case strings.HasPrefix(text, "call: "):
		call(request, "I look. ", "local__do", `{"what":"`+strings.TrimPrefix(text, "call: ")+`"}`, yield)
	case text == "block":
		yield(converse.Delta{Text: "one "}, nil)
		<-ctx.Done()
		yield(nil, ctx.Err())
	default:
		say(request, "You said: "+text, yield)
	}
}

// served is an engine behind a handler.
type served struct {
	t      *testing.T
	store  history.Store
	engine *engine.Local
	feed   *httpapi.Feed
	server *httptest.Server
	owner  string // sent with each request
}

// who is the header that identifies the caller in tests.
const who = "X-Who"

type whoKey struct{}

// serve starts a server. change may be nil.
func serve(t *testing.T, m model, approve converse.ApproveFunc, change func(*httpapi.Options)) *served {
	t.Helper()
	return serveStore(t, history.NewMemory(), nil, m, approve, change)
}

// serveStore is like serve with a store and a stream that servers may share; the stream may be
// nil.
func serveStore(
	t *testing.T, store history.Store, stream engine.Stream, m model, approve converse.ApproveFunc, change func(*httpapi.Options),
) *served {
	t.Helper()
	do, err := invoker.New("do", "Does it.", func(_ context.Context, in struct {
		What string `json:"what"`
	}) (string, error) {
		return "did " + in.What, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", do))
	if err != nil {
		t.Fatal(err)
	}
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(m, roster, &converse.Options{ID: id, Log: store, Approve: approve}), nil
	}
	local, err := engine.NewLocal(store, open, &engine.Options{Stream: stream, Poll: 20 * time.Millisecond, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, store: store, engine: local, feed: httpapi.NewFeed(local, store), owner: "ann"}
	options := &httpapi.Options{Open: open, Owner: func(ctx context.Context) (string, error) {
		name, _ := ctx.Value(whoKey{}).(string)
		if name == "" {
			return "", invoker.Failf(invoker.Unauthorized, "Nobody knows you.")
		}
		return "owner-" + name, nil
	}, Heartbeat: 50 * time.Millisecond}
	if change != nil {
		change(options)
	}
	handler := httpapi.New(s.feed, options)
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, r.Header.Get(who))))
	}))
	t.Cleanup(func() {
		s.feed.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		now, end := context.WithCancel(ctx)
		end()
		if err := local.Close(now); err != nil {
			t.Errorf("the engine: %v", err)
		}
		s.server.Close()
		_ = roster.Close(ctx)
	})
	return s
}

// as returns the same server for another caller.
func (s *served) as(owner string) *served {
	other := *s
	other.owner = owner
	return &other
}

// request sends a request. body is a text, or a value for JSON; nil sends none.
func (s *served) request(method, path string, body any, headers ...string) *http.Response {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set(who, s.owner)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.server.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// answer is a response whose body was read, with its members if it is JSON.
type answer struct {
	status int
	header http.Header
	text   string
	form   map[string]any
}

// do sends a request, reads the response, and checks it against the description.
func (s *served) do(method, path string, body any, headers ...string) answer {
	s.t.Helper()
	response := s.request(method, path, body, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, text: string(text)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(text, &a.form); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	checkResponse(s.t, method, path, a)
	return a
}

// want sends a request and requires a status.
func (s *served) want(status int, method, path string, body any, headers ...string) answer {
	s.t.Helper()
	a := s.do(method, path, body, headers...)
	if a.status != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, status, a.text)
	}
	return a
}

// create begins a conversation and returns its ID.
func (s *served) create(text string) string {
	s.t.Helper()
	return s.want(http.StatusCreated, "POST", "/api/conversations", map[string]any{"message": text}).form["id"].(string)
}

// ended waits until a turn ends at or after a position, and returns the end and the length of the log.
func (s *served) ended(id string, after int) (engine.Ended, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for event, err := range s.engine.Watch(ctx, id, after) {
		if err != nil {
			s.t.Fatalf("watching %s: %v", id, err)
		}
		switch e := event.(type) {
		case engine.Added:
			after = e.Position
		case engine.Ended:
			if e.Error != "" && !e.Again.IsZero() {
				continue
			}
			return e, after
		}
	}
	s.t.Fatal("the engine is closed")
	return engine.Ended{}, 0
}
