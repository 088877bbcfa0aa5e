// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/console"
)

// watched serves conversations whose model streams a word for each POST to /delta: below /api
// and /console, and at /bare, where each connection gets the same bytes.
type watched struct {
	store  history.Store
	engine *engine.Local

	mu    sync.Mutex
	began *sync.Cond             // with mu: a turn began
	turns map[string]chan string // by conversation; the turns that run
	bare  chan struct{}          // closed and replaced with each delta
}

// turn is the model of one conversation. It streams texts; an empty one ends it.
type turn struct {
	*watched
	id string
}

func (t turn) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		texts := make(chan string)
		t.mu.Lock()
		t.turns[t.id] = texts
		t.began.Broadcast()
		t.mu.Unlock()
		for text := range texts {
			if text == "" {
				break
			}
			if !yield(converse.Delta{Text: text}, nil) {
				return
			}
		}
		reply := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(answer), Finish: canister.FinishStop}
		yield(converse.Reply{Message: reply}, nil)
	}
}

// word is in each delta, and once in each answer.
const word = "eloquence "

var answer = word + strings.Repeat("is **better** than `silence`, in most places.\n\n- in public\n- at home\n\n| where | how |\n|---|---|\n| here | so |\n\n", 15)

func watchedHandler() http.Handler {
	w := &watched{store: history.NewMemory(), turns: map[string]chan string{}, bare: make(chan struct{})}
	w.began = sync.NewCond(&w.mu)
	roster, err := ensemble.NewRoster()
	if err != nil {
		panic(err)
	}
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(turn{w, id}, roster, &converse.Options{ID: id, Log: w.store}), nil
	}
	if w.engine, err = engine.NewLocal(w.store, open, &engine.Options{Work: 2000}); err != nil {
		panic(err)
	}
	feed := httpapi.NewFeed(w.engine, w.store)
	pages := console.New(console.Options{
		Identify: func(next http.Handler) http.Handler { return next }, Tokens: func() bool { return false },
		Caller: func(context.Context) (console.Caller, error) { return console.Caller{Role: console.Operate}, nil },
		Store:  w.store, Engine: w.engine, Feed: feed,
	})
	mux := http.NewServeMux()
	mux.Handle("/api/", httpapi.New(feed, &httpapi.Options{
		Open: open, Owner: func(context.Context) (string, error) { return "ann", nil }, MaxStreams: 10_000,
	}))
	mux.Handle("/console/", pages)
	mux.HandleFunc("/link", func(r http.ResponseWriter, _ *http.Request) { fmt.Fprint(r, pages.Link("")) })
	mux.HandleFunc("/begin", w.begin)
	mux.HandleFunc("/delta", w.delta)
	mux.HandleFunc("/bare", w.serveBare)
	mux.HandleFunc("/memory", func(r http.ResponseWriter, _ *http.Request) {
		runtime.GC()
		runtime.GC() // the second frees what finalizers held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprint(r, m.HeapAlloc+m.StackInuse)
	})
	return mux
}

// begin begins a turn of a conversation, and waits until its model streams.
func (w *watched) begin(_ http.ResponseWriter, r *http.Request) {
	id, owner := r.FormValue("id"), "ann"
	said := canister.User{Head: canister.Head{ID: rand.Text()}, Content: canister.Texts("Speak.")}
	_, err := w.store.Info(r.Context(), id)
	if errors.Is(err, history.ErrNotFound) {
		hello := canister.User{Head: canister.Head{ID: rand.Text()}, Content: canister.Texts("Hello.")}
		reply := canister.Assistant{Head: canister.Head{ID: rand.Text()}, Content: canister.Texts("Hello."), Finish: canister.FinishStop}
		if err = w.store.Append(r.Context(), id, 0, hello, reply); err == nil {
			err = w.store.Describe(r.Context(), id, history.Change{Owner: &owner})
		}
	}
	if err == nil {
		err = w.engine.Send(r.Context(), id, said)
	}
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.turns[id] == nil {
		w.began.Wait()
	}
}

// delta sends a word to each conversation whose turn runs, or ends the turns.
func (w *watched) delta(_ http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, texts := range w.turns {
		if texts <- r.FormValue("text"); r.FormValue("text") == "" {
			delete(w.turns, id)
		}
	}
	close(w.bare)
	w.bare = make(chan struct{})
}

// serveBare writes the same bytes to each connection.
func (w *watched) serveBare(r http.ResponseWriter, request *http.Request) {
	r.Header().Set("Content-Type", "text/event-stream")
	event := []byte("id: 1.1.1\nevent: delta\ndata: {\"position\":1,\"attempt\":1,\"index\":1,\"text\":\"" + word + "\"}\n\n")
	for control := http.NewResponseController(r); ; {
		w.mu.Lock()
		next := w.bare
		w.mu.Unlock()
		if control.Flush() != nil {
			return
		}
		select {
		case <-next:
		case <-request.Context().Done():
			return
		}
		if _, err := r.Write(event); err != nil {
			return
		}
	}
}

// get returns the body of a response of the server.
func (s *httpServer) get(b *testing.B, path string) string {
	b.Helper()
	response, err := http.Get(s.url + path)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v: %s", path, response.Status, err, text)
	}
	return string(text)
}

// follow reads a stream on a connection of its own until the benchmark ends, and calls got for
// each word. It returns when the stream has its first event with an ID: until then the server may
// not watch the conversation, and a stream has no words of a message that began before. The
// stream of bare bytes has no such event.
func (s *httpServer) follow(b *testing.B, path, cookie string, got func()) {
	b.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { connection.Close() })
	fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: bench\r\nCookie: %s\r\nAccept: text/event-stream\r\n\r\n", path, cookie)
	reader := bufio.NewReaderSize(connection, 32<<10)
	status, err := reader.ReadString('\n')
	if err != nil || !strings.Contains(status, "200") {
		b.Fatalf("%s: %q, %v", path, status, err)
	}
	for line := status; path != "/bare" && !strings.HasPrefix(line, "id:"); {
		if line, err = reader.ReadString('\n'); err != nil {
			b.Fatalf("%s: %v", path, err)
		}
	}
	go func() {
		for {
			line, err := reader.ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return // closed
			}
			if bytes.Contains(line, []byte(word)) {
				got()
			}
		}
	}()
}

// login returns the cookie of an operator of the console.
func (s *httpServer) login(b *testing.B) string {
	b.Helper()
	request, err := http.NewRequest(http.MethodGet, s.url+s.get(b, "/link"), nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || len(response.Cookies()) == 0 {
		b.Fatalf("the console sets no cookie: %v", err)
	}
	response.Body.Close()
	return response.Cookies()[0].Name + "=" + response.Cookies()[0].Value
}

// BenchmarkWatchers measures what a delta costs the server when 1,000 connections watch one
// conversation, and when they watch 1,000 of them, what a message of 2 KB costs, and the
// memory of a watcher. With -short there are 10.
func BenchmarkWatchers(b *testing.B) {
	watchers := 1000
	if testing.Short() {
		watchers = 10
	}
	for _, door := range []struct{ name, path string }{
		{"bare", "/bare#%s"}, {"api", "/api/conversations/%s/events"}, {"console", "/console/conversations/%s/live?after=2"},
	} {
		for _, w := range []watching{{"one", 1, watchers, false}, {"each", watchers, watchers, false}, {"message", 1, watchers, true}} {
			if door.name != "bare" || w.name == "one" {
				b.Run(door.name+"/"+w.name, func(b *testing.B) { w.run(b, door.path) })
			}
		}
	}
}

// watching is who watches what.
type watching struct {
	name                    string
	conversations, watchers int
	whole                   bool // whole messages
}

func (w watching) run(b *testing.B, path string) {
	s := launchHTTP(b, "watched")
	cookie := s.login(b)
	begin := func() {
		for n := range w.conversations {
			s.get(b, fmt.Sprintf("/begin?id=talk%d", n))
		}
	}
	memory := func() (n float64) {
		if _, err := fmt.Sscan(s.get(b, "/memory"), &n); err != nil {
			b.Fatal(err)
		}
		return n
	}
	words := make(chan struct{}, w.watchers)
	say := func(text string) {
		s.get(b, "/delta?text="+url.QueryEscape(text))
		for range w.watchers {
			select {
			case <-words:
			case <-time.After(time.Minute):
				b.Fatal("an event does not come")
			}
		}
	}
	begin()
	before := memory()
	for n := range w.watchers {
		target, _, _ := strings.Cut(fmt.Sprintf(path, fmt.Sprint("talk", n%w.conversations)), "#")
		s.follow(b, target, cookie, func() { words <- struct{}{} })
	}
	for range 3 {
		say(word)
	}
	each := (memory() - before) / float64(w.watchers)
	var spent time.Duration
	for b.Loop() {
		begun := s.cpu(b)
		if w.whole {
			say("")
			spent += s.cpu(b) - begun
			begin()
			continue
		}
		say(word)
		spent += s.cpu(b) - begun
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/float64(w.watchers), "cpu-us/delivery")
	b.ReportMetric(each/1000, "KB/watcher")
}
