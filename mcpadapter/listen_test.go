// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// A message whose event is cut off is asked for again: the client names the event
// before it.
func TestStreamIsCutOff(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	for name, abort := range map[string]bool{"by the end": false, "by an error": true} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 100)
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != "GET" {
					return false
				}
				last := r.Header.Get("Last-Event-ID")
				asked <- last
				w.Header().Set("Content-Type", "text/event-stream")
				if last != "" {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
					return true
				}
				fmt.Fprintf(w, "id: 1\nretry: 1\ndata: %s\n\nid: 2\ndata: %s", changed, changed[:20])
				w.(http.Flusher).Flush()
				if abort {
					panic(http.ErrAbortHandler)
				}
				return true
			})
			openScripted(t, s)
			for _, want := range []string{"", "1"} {
				if got := mcptest.Await(t, "a stream", asked); got != want {
					t.Errorf("the client asks for what follows %q, want %q", got, want)
				}
			}
		})
	}
}

// A server that refuses another stream, because it has not noticed the end of the last one,
// is asked again.
func TestStreamIsRefusedOnce(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter){
		"409":        func(w http.ResponseWriter) { w.WriteHeader(http.StatusConflict) },
		"404":        func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"a web page": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			third := make(chan struct{})
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != "GET" {
					return false
				}
				switch asked.Add(1) {
				case 1:
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "retry: 1\ndata:\n\n")
				case 2:
					refuse(w)
				case 3:
					close(third)
					mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					<-r.Context().Done()
				}
				return true
			})
			c := openScripted(t, s)
			mcptest.Await(t, "the third stream", third)
			mcptest.Await(t, "the change", c.Changed())
		})
	}
}

// A server that no longer has the event after which a stream was cut off refuses to continue
// there: the stream is opened from now on. One that is busy, or wants another token, is asked
// for the rest again.
func TestStreamIsRefusedForItsLastEvent(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{400: "", 403: "", 500: "", 401: "7", 409: "7", 429: "7", 502: "7", 503: "7", 504: "7"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 100)
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != "GET" {
					return false
				}
				last := r.Header.Get("Last-Event-ID")
				asked <- last
				switch len(asked) {
				case 1:
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "retry: 1\nid: 7\ndata:\n\n")
				case 2:
					w.WriteHeader(status)
				default:
					mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					<-r.Context().Done()
				}
				return true
			})
			mcptest.Await(t, "the change", openScripted(t, s).Changed())
			for i, want := range []string{"", "7", want} {
				if got := mcptest.Await(t, "a stream", asked); got != want {
					t.Errorf("request %d asks for what follows %q, want %q", i+1, got, want)
				}
			}
		})
	}
}

// The same with the newest protocol: a request to listen that was acknowledged is made again,
// also after a refusal.
func TestListeningIsRefusedOnce(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(http.ResponseWriter, mcptest.Message){
		"409":      func(w http.ResponseWriter, _ mcptest.Message) { w.WriteHeader(http.StatusConflict) },
		"an error": func(w http.ResponseWriter, m mcptest.Message) { mcptest.ReplyError(w, m, -32000, "busy") },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			third := make(chan struct{})
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				const acknowledged = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`
				switch {
				case m.Method == "server/discover":
					mcptest.Reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
				case m.Method != "subscriptions/listen":
					return false
				default:
					switch asked.Add(1) {
					case 1:
						send := mcptest.StartStream(w)
						send(acknowledged)
						send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
					case 2:
						refuse(w, m)
					case 3:
						close(third)
						mcptest.StartStream(w)(acknowledged)
						<-r.Context().Done()
					}
				}
				return true
			})
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, nil))
			mcptest.Await(t, "the third request", third)
			mcptest.Await(t, "what was missed", c.Changed())
		})
	}
}

// An answer on the stream that is for no request is not the answer of the call whose ID it
// has: the server may have meant a call of a connection before.
func TestAnswerOnTheStandaloneStream(t *testing.T) {
	calls, sent := make(chan string, 1), make(chan struct{})
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "GET":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"of another\"}]}}\n\n", <-calls)
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "tools/call":
			calls <- string(m.ID)
			mcptest.Await(t, "what came on the stream", sent)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"its own"}]}}`, m.ID)
		default:
			return false
		}
		return true
	})
	connection := openScripted(t, s)
	go func() {
		defer close(sent)
		select {
		case <-connection.Changed(): // it follows the answer
		case <-connection.Lost():
		}
	}()
	output, err := mcptest.Tool(t, connection, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if text := canister.TextOf(output.Content); err != nil || text != "its own" {
		t.Errorf("the call has the answer %q, %v", text, err)
	}
}

// Short secrets are also found in texts of the server.
func TestErrorsHaveNoShortSecrets(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no %s, %s"}}`, m.ID, r.Header.Get("X-Key"),
			strings.TrimPrefix(r.Header.Get("X-Login"), "Basic "))
		return true
	})
	options := &mcpadapter.HTTPOptions{
		Headers: map[string]string{"X-Key": "h-12345", "X-Login": "Basic a-1234"}, ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"},
	}
	_, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, options)), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	failure := invoker.AsFailure(err)
	if text := fmt.Sprint(failure, failure.Cause); !strings.Contains(text, "no [secret], [secret]") {
		t.Error(text)
	}
}
