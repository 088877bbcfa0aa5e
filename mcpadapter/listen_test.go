// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// A server may no longer have the event after which a stream was cut off. If it has refused to
// continue there three times, the connection ends, for a new session. A server that is busy, has
// the last stream open, or wants another token, is asked again and again. The ID is never left out.
func TestStreamIsRefusedForItsLastEvent(t *testing.T) {
	t.Parallel()
	for status, ends := range map[int]bool{400: true, 410: true, 500: true, 401: false, 403: false, 409: false, 429: false, 502: false, 503: false, 504: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 1000)
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != "GET" {
					return false
				}
				asked <- r.Header.Get("Last-Event-ID")
				if len(asked) > 1 && len(asked) < 5 {
					w.WriteHeader(status)
					return true
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "retry: 1\nid: 7\ndata:\n\n")
				return true
			})
			c := openScripted(t, s)
			want := []string{"", "7", "7", "7"}
			if ends {
				mcptest.Await(t, "the end", c.Lost())
				if err := fmt.Sprint(c.Err()); !strings.Contains(err, "the server refuses to continue its stream: ") || !strings.Contains(err, fmt.Sprint(status)) {
					t.Error(err)
				}
			} else {
				mcptest.Await(t, "another stream", c.Changed())
				want = append(want, "7")
			}
			for i, want := range want {
				if got := mcptest.Await(t, "a stream", asked); got != want {
					t.Errorf("request %d asks for what follows %q, want %q", i+1, got, want)
				}
			}
		})
	}
}

// Refusals end the connection only if they come one after another.
func TestStreamIsRefusedNowAndThen(t *testing.T) {
	t.Parallel()
	statuses := []int{400, 500, 503, 400}
	var asked atomic.Int32
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "GET" {
			return false
		}
		if n := int(asked.Add(1)) - 2; n >= 0 && n < len(statuses) {
			w.WriteHeader(statuses[n])
			return true
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 1\nid: 7\ndata:\n\n")
		return true
	})
	c := openScripted(t, s)
	select {
	case <-c.Changed():
	case <-c.Lost():
		t.Errorf("the connection ends after %d streams: %v", asked.Load(), c.Err())
	}
}

// Refusals do not end a connection while a call runs, or a question of the server waits.
func TestStreamIsRefusedDuringWork(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"tools/call", "elicitation/create"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			called, fourth, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var asked atomic.Int32
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				switch {
				case m.Method == "tools/call":
					close(called)
					select {
					case <-fourth:
					case <-r.Context().Done():
						return true
					}
					mcptest.Reply(w, m, `{"content":[{"type":"text","text":"done"}]}`)
				case m.Method == "POST": // an answer has no method
					close(answered)
					return false
				case m.Method != "GET":
					return false
				case asked.Add(1) == 1:
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "retry: 1\nid: 7\n")
					if method == "elicitation/create" {
						fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
					} else {
						fmt.Fprint(w, "data:\n\n")
						_ = http.NewResponseController(w).Flush()
						select {
						case <-called:
						case <-r.Context().Done():
						}
					}
					fmt.Fprint(w, "\n\n")
				default:
					if asked.Load() == 5 {
						close(fourth)
					}
					w.WriteHeader(http.StatusBadRequest)
				}
				return true
			})
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{
				Protocol: "2025-11-25", Elicit: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					select {
					case <-fourth:
						return &invoker.ElicitResult{Action: invoker.Accept}, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				},
			}}))
			if method == "elicitation/create" {
				select {
				case <-answered:
				case <-c.Lost():
					t.Error("the question ends with the connection")
				}
			} else if output, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil || canister.TextOf(output.Content) != "done" {
				t.Errorf("%v, %v", output, err)
			}
			mcptest.Await(t, "the end", c.Lost())
		})
	}
}

// The server of the SDK refuses a stream for good if it has dropped an event. If it has dropped none, and refuses for a moment, it must not ask its questions again.
func TestStreamOfTheSDKIsRefused(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]int{"an event is dropped": 200, "none is dropped": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := mcp.NewMemoryEventStore(nil)
			store.SetMaxBytes(bytes)
			server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
			sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{EventStore: store})
			var busy, asked, refusals atomic.Int32
			resumed := make(chan string, 100)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch id := r.Header.Get("Last-Event-ID"); {
				case r.Method != "GET":
				case busy.Load() > 0:
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				case refusals.Add(-1) >= 0:
					w.WriteHeader(http.StatusInternalServerError)
					return
				default:
					resumed <- id
				}
				sdk.ServeHTTP(w, r)
			}))
			t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{
				Protocol: "2025-11-25", Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					asked.Add(1)
					return &invoker.ElicitResult{Action: invoker.Accept}, nil
				},
			}}))
			mcptest.Await(t, "a stream", resumed)
			for session := range server.Sessions() {
				question := &mcp.ElicitParams{Mode: "form", Message: "Delete it?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
				if _, err := session.Elicit(mcptest.Within(t), question); err != nil {
					t.Fatal(err)
				}
				busy.Store(1)
				s.CloseClientConnections()
				for range 20 {
					_ = session.NotifyProgress(t.Context(), &mcp.ProgressNotificationParams{ProgressToken: "t", Message: strings.Repeat("m", 100)})
				}
			}
			refusals.Store(2)
			busy.Store(0)
			if bytes < 1<<20 {
				mcptest.Await(t, "the end", c.Lost())
				return
			}
			mcptest.Await(t, "another stream", c.Changed())
			if id := mcptest.Await(t, "a stream", resumed); id == "" || asked.Load() != 1 {
				t.Errorf("the stream continues after %q; the person was asked %d times", id, asked.Load())
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
