// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestAnswers lists the possible answers of a server to a call; afterwards the connection
// must still work, unless the answer ended it.
func TestAnswers(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter, mcptest.Message) {
		return func(w http.ResponseWriter, _ mcptest.Message) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			http.Error(w, "<html>no", code)
		}
	}
	rpc := func(code int) func(http.ResponseWriter, mcptest.Message) {
		return func(w http.ResponseWriter, m mcptest.Message) { mcptest.ReplyError(w, m, code, "so it is") }
	}
	body := func(kind, text string) func(http.ResponseWriter, mcptest.Message) {
		return func(w http.ResponseWriter, _ mcptest.Message) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, text)
		}
	}
	foreign := func(code int) func(http.ResponseWriter, mcptest.Message) { // as the Python SDK answers
		return func(w http.ResponseWriter, m mcptest.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"so it is"}}`)
		}
	}
	answer := func(frame string) func(http.ResponseWriter, mcptest.Message) { // whose result is missing
		return func(w http.ResponseWriter, m mcptest.Message) {
			body("text/event-stream", fmt.Sprintf(frame, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":[]}`, m.ID)))(w, m)
		}
	}
	cut := func(w http.ResponseWriter, _ mcptest.Message) {
		mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"none","progress":1}}`)
	}
	tests := []struct {
		name        string
		answer      func(http.ResponseWriter, mcptest.Message)
		write, read invoker.Code // of a tool that is not repeatable, and of one that is
		retryable   bool         // the latter
		says        string
	}{
		{"400", status(400), invoker.Protocol, invoker.Protocol, false, ""},
		{"400 with another ID", foreign(400), invoker.Protocol, invoker.Protocol, false, "so it is"},
		{"413 with another ID", foreign(413), invoker.InvalidArguments, invoker.InvalidArguments, false, ""},
		{"200 with another ID", foreign(200), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, "so it is"},
		{
			"200 with a message of its own", body("application/json", `{"jsonrpc":"2.0","method":"notifications/message"}`),
			invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, "",
		},
		{"401", status(401), invoker.Unauthorized, invoker.Unauthorized, false, ""},
		{"403", status(403), invoker.Unauthorized, invoker.Unauthorized, false, ""},
		{"404 without a session", status(404), invoker.Unavailable, invoker.Unavailable, false, ""},
		{"413", status(413), invoker.InvalidArguments, invoker.InvalidArguments, false, ""},
		{"429", status(429, "Retry-After", "7"), invoker.Unavailable, invoker.Unavailable, true, "7s"},
		{"500", status(500), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"502", status(502), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"503", status(503), invoker.Unavailable, invoker.Unavailable, true, ""},
		{"504", status(504), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"method not found", rpc(-32601), invoker.ToolNotFound, invoker.ToolNotFound, false, "so it is"},
		{"invalid params", rpc(-32602), invoker.InvalidArguments, invoker.InvalidArguments, false, "so it is"},
		{"internal error", rpc(-32603), invoker.ExecutionFailed, invoker.ExecutionFailed, false, "so it is"},
		{"parse error", rpc(-32700), invoker.Protocol, invoker.Protocol, false, "so it is"},
		{"its own code", rpc(17), invoker.ExecutionFailed, invoker.ExecutionFailed, false, "so it is"},
		{"web page", body("text/html", "<html>"), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, "text/html"},
		{"broken JSON", body("application/json", `{"jsonrpc"`), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"accepted", status(202), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, "202"},
		{"too large", body("application/json", strings.Repeat(" ", 2<<20)), invoker.ResultTooLarge, invoker.ResultTooLarge, false, ""},
		{"no result", func(w http.ResponseWriter, m mcptest.Message) { mcptest.Reply(w, m, `[]`) }, invoker.Protocol, invoker.Protocol, false, ""},
		{
			"too large a stream", body("text/event-stream", "data: "+strings.Repeat("x", 2<<20)+"\n\n"), invoker.ResultTooLarge,
			invoker.ResultTooLarge, false, "",
		},
		{
			"too large, to be resumed", body("text/event-stream", "id: 1\ndata:\n\nid: 2\ndata: "+strings.Repeat("x", 2<<20)),
			invoker.ResultTooLarge, invoker.ResultTooLarge, false, "",
		},
		{"broken event", body("text/event-stream", "id: 1\ndata: {}\n\n"), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"broken line", body("text/event-stream", "data\nwhat\n\n"), invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
		{"no result in a stream", answer("data: %s\n\n"), invoker.Protocol, invoker.Protocol, false, ""},
		{"without its end", answer("event: message\ndata: %s"), invoker.Protocol, invoker.Protocol, false, ""},
		{"cut", cut, invoker.OutcomeUnknown, invoker.OutcomeUnknown, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
				if m.Method != "tools/call" {
					return false
				}
				test.answer(w, m)
				return true
			})
			c := mcptest.Open(t, mcpadapter.HTTP(s.URL,
				&mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25", MaxMessage: 1 << 20}}))
			_, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
			if mcptest.CodeOf(err) != test.write {
				t.Errorf("write failed with %v, want %s", err, test.write)
			}
			if failure := invoker.AsFailure(err); (failure.RetryAfter == 7*time.Second) != (test.says == "7s") {
				t.Errorf("the next attempt can succeed after %v", failure.RetryAfter)
			}
			if failure := invoker.AsFailure(err); failure.Retryable && len(failure.Content) == 0 { // with content, no lost connection makes it a call that was not sent
				t.Error("what the server says is not an answer")
			}
			_, err = mcptest.Tool(t, c, "read").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
			if failure := invoker.AsFailure(err); failure == nil || failure.Code != test.read ||
				failure.Retryable != test.retryable || !strings.Contains(failure.Message, test.says) {
				t.Errorf("read failed with %+v, want %s, retryable %t, saying %q", failure, test.read, test.retryable, test.says)
			}
			select {
			case <-c.Lost():
				t.Errorf("the connection was lost: %v", c.Err())
			default:
			}
		})
	}
}

// TestUnknownContent: one block that the SDK does not know costs neither the
// call nor its neighbours.
func TestUnknownContent(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		mcptest.Reply(w, m, `{"content":[{"type":"text","text":"a"},{"type":"hologram"},{"type":"text","text":"b"}]}`)
		return true
	})
	out, err := mcptest.Tool(t, openScripted(t, s), "read").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if err != nil || len(out.Content) != 3 {
		t.Fatalf("got %v, %v", out.Content, err)
	}
}

func TestSessionGone(t *testing.T) {
	gone := false
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
		case gone:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
			return true
		}
		return false
	})
	c := openScripted(t, s)
	write := mcptest.Tool(t, c, "write")
	gone = true
	if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.OutcomeUnknown {
		t.Errorf("a call in a session that is gone failed with %v, want OUTCOME_UNKNOWN: it can have gone while the call ran", err)
	}
	mcptest.Await(t, "Lost", c.Lost())
	if c.Err() == nil {
		t.Error("Err is nil")
	}
}

func TestRefusedConnection(t *testing.T) {
	s := mcptest.NewScripted(t, nil)
	c := openScripted(t, s)
	write := mcptest.Tool(t, c, "write")
	s.Close()
	// What the first call meets is a connection that was open: it may have left.
	_, _ = write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	_, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if failure := invoker.AsFailure(err); failure.Code != invoker.Unavailable || !failure.Retryable {
		t.Errorf("a call that nobody took failed with %v (%v), want UNAVAILABLE", err, failure.Cause)
	}
	_, err = mcpadapter.HTTP(s.URL, nil).Open(mcptest.Within(t))
	if err == nil {
		t.Error("Open succeeded")
	}
}

// TestSilentStream: the standing stream does not hold up anything (E12).
func TestSilentStream(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := mcptest.NewScripted(t, func(_ http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "GET" {
			return false
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	defer close(release)
	c := openScripted(t, s)
	mcptest.Tool(t, c, "read")
	if err := c.Close(mcptest.Within(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestHungConnect: a server that never answers costs no more than the time
// that was given, whatever it hangs on.
func TestHungConnect(t *testing.T) {
	for method, limit := range map[string]time.Duration{
		"server/discover":           6 * time.Second, // a part of it is for the old protocol, also on a slow machine
		"initialize":                600 * time.Millisecond,
		"notifications/initialized": 600 * time.Millisecond,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
				if m.Method != method && !(method == "initialize" && m.Method == "server/discover") {
					return false
				}
				<-r.Context().Done()
				return true
			})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c, err := mcpadapter.HTTP(s.URL, nil).Open(ctx) // which ends, or the test would not
			if err == nil {
				_ = c.Close(mcptest.Within(t))
			}
			switch {
			case method == "server/discover" && err != nil:
				t.Errorf("a server that keeps silent to the new protocol was not reached with the old one: %v", err)
			case method != "server/discover" && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("Open returned %v, want that the time ran out", err)
			}
		})
	}
}

func TestCancellationIsSent(t *testing.T) {
	begun, cancelled := make(chan struct{}), make(chan mcptest.Message, 1)
	s := mcptest.NewScripted(t, func(_ http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "tools/call":
			close(begun)
			<-r.Context().Done()
			return true
		case "notifications/cancelled":
			cancelled <- m
		}
		return false
	})
	write := mcptest.Tool(t, openScripted(t, s), "write")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := write.Invoke(ctx, mcptest.RawCall(`{}`))
		done <- err
	}()
	mcptest.Await(t, "the call", begun)
	cancel()
	if err := mcptest.Await(t, "the end of the call", done); mcptest.CodeOf(err) != invoker.Canceled {
		t.Errorf("the call failed with %v, want CANCELED", err)
	}
	m := mcptest.Await(t, "notifications/cancelled", cancelled)
	call := s.Received("tools/call")[0]
	if want := fmt.Sprintf(`"requestId":%s`, call.ID); !strings.Contains(string(m.Params), want) {
		t.Errorf("the cancellation is %s, want %s", m.Params, want)
	}
}

func TestHeadersStayHome(t *testing.T) {
	var leaked []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked = append(leaked, r.Header) }))
	defer other.Close()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%s and %s are no good"}}`, r.Header.Get("X-Key"), r.Header.Get("Authorization"))
	}))
	defer echo.Close()
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	options := &mcpadapter.HTTPOptions{Headers: map[string]string{"X-Key": "sesame-123"}, BearerToken: "token-456"}
	options.Protocol = "2025-11-25"
	if _, err := mcpadapter.HTTP(echo.URL, options).Open(mcptest.Within(t)); err == nil || strings.Contains(err.Error(),
		"sesame-123") || strings.Contains(err.Error(), "token-456") || !strings.Contains(err.Error(), "no good") {
		t.Errorf("Open at a server that repeats what it was sent: %v", err)
	}
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL+"/?key=query-789", options))
	_, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if mcptest.CodeOf(err) != invoker.Protocol {
		t.Errorf("a redirect to another origin gave %v, want PROTOCOL", err)
	}
	if len(leaked) > 0 {
		t.Errorf("another origin got %v", leaked)
	}
	for _, m := range s.Received("tools/call") {
		if m.Header.Get("X-Key") != "sesame-123" || m.Header.Get("Authorization") != "Bearer token-456" {
			t.Errorf("the server got %v", m.Header)
		}
	}
	s.Close()
	_, err = mcpadapter.HTTP(s.URL+"/?key=query-789", options).Open(mcptest.Within(t))
	failure := invoker.AsFailure(err)
	for _, secret := range []string{"sesame-123", "token-456", "query-789"} {
		if strings.Contains(failure.Error()+fmt.Sprint(failure.Cause), secret) {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

// TestSecretsOfResume: the SDK tells of a stream that cannot be taken up again
// with the URL and the session in plain text.
func TestSecretsOfResume(t *testing.T) {
	t.Parallel() // the SDK takes its time
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "session-456")
		case m.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\nretry: 1\ndata:\n\n")
			return true
		case r.Header.Get("Last-Event-ID") != "":
			panic(http.ErrAbortHandler)
		}
		return false
	})
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL+"/?key=query-789", &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
	_, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if mcptest.CodeOf(err) != invoker.OutcomeUnknown {
		t.Errorf("the call failed with %v, want OUTCOME_UNKNOWN", err)
	}
	mcptest.Await(t, "Lost", c.Lost())
	for _, err := range []error{err, invoker.AsFailure(err).Cause, c.Err()} {
		if text := fmt.Sprint(err); strings.Contains(text, "query-789") || strings.Contains(text, "session-456") {
			t.Errorf("the error holds a secret: %s", text)
		}
	}
}

func TestSSEEndpointElsewhere(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another origin got a message") }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	if _, err := mcpadapter.SSE(s.URL, nil).Open(mcptest.Within(t)); err == nil || !strings.Contains(err.Error(), "another origin") {
		t.Errorf("Open: %v", err)
	}
}

// An event that is not a message does not end a connection over HTTP with SSE.
func TestOtherEventsOverSSE(t *testing.T) {
	s := newSSE(t, func(w http.ResponseWriter, m mcptest.Message, out chan<- string) {
		out <- "event: ping\ndata: 2026-07-28T12:00:00Z\n\n"
		out <- "event: endpoint\ndata: /elsewhere\n\n"
		out <- "id: 7\nretry: 1000\n\n"
		out <- "event: heartbeat\n\n"
		out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
		w.WriteHeader(http.StatusAccepted)
	})
	write := mcptest.Tool(t, mcptest.Open(t, mcpadapter.SSE(s.URL, nil)), "write")
	for range 2 {
		if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
			t.Error(err)
		}
	}
}

// TestSSETooLarge: the stream that all answers come on has to end with an event
// that is too large, and says so.
func TestSSETooLarge(t *testing.T) {
	s := newSSE(t, func(_ http.ResponseWriter, _ mcptest.Message, out chan<- string) { out <- strings.Repeat("x", 2<<20) })
	c := mcptest.Open(t, mcpadapter.SSE(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{MaxMessage: 1 << 20}}))
	if _, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.ResultTooLarge {
		t.Errorf("the call failed with %v, want RESULT_TOO_LARGE", err)
	}
	mcptest.Await(t, "Lost", c.Lost())
	if c.Err() == nil || !strings.Contains(c.Err().Error(), "1048576 bytes") {
		t.Errorf("Err: %v", c.Err())
	}
}

// TestForgottenSSESession: a server that no longer knows the session, though its stream goes on,
// is lost with the next call.
func TestForgottenSSESession(t *testing.T) {
	s := newSSE(t, func(w http.ResponseWriter, _ mcptest.Message, _ chan<- string) {
		http.Error(w, "Could not find session", http.StatusNotFound)
	})
	c := mcptest.Open(t, mcpadapter.SSE(s.URL, nil))
	if _, err := mcptest.Tool(t, c, "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err == nil {
		t.Error("the call succeeded")
	}
	mcptest.Await(t, "Lost", c.Lost())
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "no longer knows the session") {
		t.Errorf("the connection was lost because of %v", err)
	}
}

// A call over SSE that cannot be sent fails alone: it does not end the connection that it
// shares with others.
func TestSSERefused(t *testing.T) {
	for name, test := range map[string]struct {
		user string
		want invoker.Code
	}{
		"by the server":     {"refused", invoker.Unavailable},
		"without a message": {"line\nbreak", invoker.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			begun, finish := make(chan struct{}), make(chan struct{})
			s := newSSE(t, func(w http.ResponseWriter, m mcptest.Message, out chan<- string) {
				answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
				switch m.Header.Get("X-User") {
				case "refused":
					w.WriteHeader(http.StatusTooManyRequests)
				case "slow":
					close(begun)
					go func() {
						<-finish
						out <- answer
					}()
				default:
					out <- answer
				}
			})
			c := mcptest.Open(t, mcpadapter.SSE(s.URL, &mcpadapter.HTTPOptions{TrustedHeaders: map[string]string{"X-User": "user"}}))
			write := mcptest.Tool(t, c, "write")
			as := func(name string) error {
				_, err := write.Invoke(invoker.WithTrusted(mcptest.Within(t), user.Value(name)), mcptest.RawCall(`{}`))
				return err
			}
			slow := make(chan error, 1)
			go func() { slow <- as("slow") }()
			mcptest.Await(t, "the slow call", begun)
			if err := as(test.user); mcptest.CodeOf(err) != test.want {
				t.Errorf("the refused call failed with %v, want %s", err, test.want)
			}
			if err := as("next"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			close(finish)
			if err := mcptest.Await(t, "the slow call", slow); err != nil {
				t.Errorf("the call in flight: %v", err)
			}
			select {
			case <-c.Lost():
				t.Errorf("the connection was lost: %v", c.Err())
			default:
			}
		})
	}
}

// TestCloseCancels: the server is told that the calls in flight are off.
func TestCloseCancels(t *testing.T) {
	begun, cancelled := make(chan struct{}), make(chan mcptest.Message, 8)
	s := mcptest.NewScripted(t, func(_ http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "tools/call":
			close(begun)
			<-r.Context().Done()
			return true
		case "notifications/cancelled":
			cancelled <- m
		}
		return false
	})
	c := openScripted(t, s)
	write := mcptest.Tool(t, c, "write")
	done := make(chan error, 1)
	go func() {
		_, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		done <- err
	}()
	mcptest.Await(t, "the call", begun)
	if err := c.Close(mcptest.Within(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := mcptest.Await(t, "the end of the call", done); mcptest.CodeOf(err) != invoker.OutcomeUnknown {
		t.Errorf("the call failed with %v, want OUTCOME_UNKNOWN", err)
	}
	mcptest.Await(t, "notifications/cancelled", cancelled)
}

// TestErrorsThatRepeatSecrets: the secrets of a call are removed from a JSON-RPC error that repeats them.
func TestErrorsThatRepeatSecrets(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			said := r.Header.Get("Authorization") + " " + r.Header.Get("X-Key") + " " + r.Header.Get("X-User")
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":%q,"data":{"elicitations":[{"message":%q}]}}}`,
				m.ID, said, said)
		}
		return m.Method == "tools/call"
	})
	options := &mcpadapter.HTTPOptions{
		Headers: map[string]string{"X-Key": "sesame-123"}, BearerToken: "token-456", TrustedHeaders: map[string]string{"X-User": "user"},
		ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"},
	}
	ctx := invoker.WithTrusted(mcptest.Within(t), user.Value("credential-789"))
	_, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, options)), "write").Invoke(ctx, mcptest.RawCall(`{}`))
	failure := invoker.AsFailure(err)
	if failure == nil || failure.Code != invoker.Unauthorized {
		t.Fatalf("the call: %v", err)
	}
	for _, secret := range []string{"sesame-123", "token-456", "credential-789"} {
		if text := fmt.Sprint(failure, failure.Cause); strings.Contains(text, secret) {
			t.Errorf("%s", text)
		}
	}
}
