// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/internal/access"
)

// TestStreamsHoldNoBodies: a stream does not hold the memory of the body of its request.
func TestStreamsHoldNoBodies(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxBody, o.MaxBodies = 1000, 1500 })
	id := s.create("hello")
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/responses", `{"input":"block","stream":true}`},
		{"GET", "/api/conversations/" + id + "/events", `{}`},
		{"POST", "/v1/responses", `{"input":"block","stream":true}`},
		{"POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"block"}],"stream":true}`},
		{"POST", "/agui", `{"threadId":"t","runId":"r","state":"` + strings.Repeat("x", 700) + `","messages":[{"id":"m","role":"user","content":"block"}]}`},
		{"POST", "/v1/responses", `{"input":"block","stream":true}`},
	} {
		chunked := io.MultiReader(strings.NewReader(c.body)) // without a length
		request, err := http.NewRequestWithContext(t.Context(), c.method, s.server.URL+c.path, chunked)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(who, "ann")
		request.Header.Set("Content-Type", "application/json")
		response, err := s.server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d", c.method, c.path, response.StatusCode)
		}
		if c.path == "/agui" { // it holds its body until it has sent the state
			events := bufio.NewScanner(response.Body)
			for events.Scan() && !strings.Contains(events.Text(), "TEXT_MESSAGE_START") {
			}
		}
	}
}

// TestWaitingMessagesHoldTheirMemory: a message that waits for the turn of its conversation counts among the bodies
// under way. It turns red if the memory is free when the body is parsed.
func TestWaitingMessagesHoldTheirMemory(t *testing.T) {
	text := strings.Repeat("x", 700)
	for _, path := range []string{"/api/conversations/ID/messages", "/v1/responses", "/agui"} {
		admitted := make(chan struct{}, 8)
		s := serve(t, echo, nil, func(o *httpapi.Options) {
			o.MaxBody, o.MaxBodies = 1000, 1500
			o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
				admitted <- struct{}{}
				return enter(ctx)
			}
		})
		run := func(id, text string) object {
			return object{"threadId": "t", "runId": "r", "messages": []object{{"id": id, "role": "user", "content": text}}}
		}
		blocked := s.open("POST", "/agui", run("m", "block"))
		<-admitted
		id := blocked.Header.Get("Consort-Conversation")
		path = strings.ReplaceAll(path, "ID", id)
		body := map[string]object{"/v1/responses": {"input": text, "conversation": id}, "/agui": run("n", text)}[path]
		if body == nil {
			body = object{"message": text}
		}
		first := s.begin(t.Context(), path, body)
		<-admitted
		second := s.begin(t.Context(), path, body)
		select {
		case <-second.done:
			if second.status != http.StatusTooManyRequests || !strings.Contains(second.body, `"too_many_bodies"`) {
				t.Errorf("%s: the second message gets %d %s", path, second.status, second.body)
			}
		case <-admitted:
			t.Errorf("%s: the second message waits too", path)
		}
		s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
		<-first.done
		_ = blocked.Body.Close()
		s.want(http.StatusCreated, "POST", "/api/conversations", object{"message": text})
	}
}

// TestAnswersEnterWhileMessagesWait: messages that wait leave memory for answers. It turns red if they may use all of it.
func TestAnswersEnterWhileMessagesWait(t *testing.T) {
	admitted, release := make(chan struct{}, 8), make(chan struct{})
	s := serve(t, echo, ask, func(o *httpapi.Options) {
		o.MaxBody, o.MaxBodies = 1000, 8800 // 2200 for a client, and half of that for its messages
		o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
			if user, is := entry.Canister.(canister.User); is && len(canister.TextOf(user.Content)) > 100 {
				admitted <- struct{}{}
				<-release
			}
			return enter(ctx)
		}
	})
	at := "/api/conversations/" + s.create("call: it")
	s.ended(strings.TrimPrefix(at, "/api/conversations/"), 0)
	wait := s.want(http.StatusOK, "GET", at+"/waits", nil).form["waits"].([]any)[0].(object)["id"].(string)
	message := object{"message": strings.Repeat("x", 900)}
	var waiting []*recorded
	for range 2 {
		next := s.begin(t.Context(), "/api/conversations", message)
		select {
		case <-admitted:
			waiting = append(waiting, next)
		case <-next.done:
			if next.status != http.StatusTooManyRequests || !strings.Contains(next.body, `"too_many_bodies"`) {
				t.Errorf("got %d %s", next.status, next.body)
			}
		}
	}
	if len(waiting) != 1 {
		t.Errorf("%d messages wait", len(waiting))
	}
	answer := s.begin(t.Context(), at+"/waits/"+wait, object{"verdict": "allow", "reason": strings.Repeat("x", 900)})
	if <-answer.done; answer.status != http.StatusNoContent {
		t.Errorf("the answer gets %d %s", answer.status, answer.body)
	}
	close(release)
	for _, one := range waiting {
		if <-one.done; one.status != http.StatusCreated {
			t.Errorf("got %d %s", one.status, one.body)
		}
	}
}

// TestResultsOfARefusedMessage: if the message of a request cannot wait, its results are not given either, and the request
// can be sent again. It turns red if continueTurn does not call mayWait.
func TestResultsOfARefusedMessage(t *testing.T) {
	for path, tools := range map[string][]object{"/agui": flatTools("pick"), "/v1/chat/completions": chatTools("pick"), "/v1/responses": flatTools("pick")} {
		waiting, release := make(chan struct{}), make(chan struct{})
		s := serve(t, uses, nil, func(o *httpapi.Options) {
			o.MaxBody, o.MaxBodies = 4000, 32_000 // 8000 for a client, and half of that for its messages
			o.Admit = func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
				if user, is := entry.Canister.(canister.User); is && len(canister.TextOf(user.Content)) > 3000 {
					close(waiting)
					<-release
				}
				return enter(ctx)
			}
		})
		body := func(messages ...object) object {
			return object{"threadId": "t", "runId": "r", "messages": messages, "tools": tools}
		}
		question := object{"id": "m1", "role": "user", "content": "use pick"}
		var request object
		switch path {
		case "/v1/chat/completions":
			body = func(messages ...object) object { return object{"messages": messages, "tools": tools} }
			message, ids := chatCalls(t, s.want(http.StatusOK, "POST", path, body(question)))
			request = body(question, message, toolMessage(ids["pick"], "picked"), user("more"))
		case "/v1/responses":
			first := s.want(http.StatusOK, "POST", path, object{"input": "use pick", "tools": tools}).form
			request = object{"previous_response_id": first["id"], "input": []object{callOutput(functionCalls(first)["pick"], "picked"), user("more")}}
		}
		if path == "/agui" {
			s.run(body(question))
		}
		id := ""
		for one := range s.lengths() {
			id = one
		}
		if call := ofKind[canister.Invocation](s, id)[0].ID; path == "/agui" {
			said := object{"id": "a1", "role": "assistant", "toolCalls": []object{{"id": call}}}
			request = body(question, said, object{"role": "tool", "toolCallId": call, "content": "picked"}, object{"id": "m2", "role": "user", "content": "more"})
		}
		held := s.begin(t.Context(), "/api/conversations", object{"message": strings.Repeat("x", 3900)})
		<-waiting
		refused := s.begin(t.Context(), path, request)
		if <-refused.done; refused.status != http.StatusTooManyRequests || !strings.Contains(refused.body, `"too_many_bodies"`) {
			t.Errorf("%s: %d %s", path, refused.status, refused.body)
		}
		if given := ofKind[canister.Answer](s, id); len(given) != 0 {
			t.Errorf("%s: given are %v", path, given)
		}
		close(release)
		<-held.done
		s.want(http.StatusOK, "POST", path, request)
		if given, said := ofKind[canister.Answer](s, id), ofKind[canister.User](s, id); len(given) != 1 || len(said) != 2 {
			t.Errorf("%s: then, given are %v, and the messages are %v", path, given, said)
		}
	}
}

// TestTurnsHoldNoMessages: a request that follows its turn does not keep what its client has sent.
func TestTurnsHoldNoMessages(t *testing.T) {
	head, text := canister.Head{ID: "a", Extra: canister.Extra{Metadata: canister.Fields{"tools": []byte(`"long"`)}}}, canister.Texts("long")
	calls := []canister.Canister{
		canister.Wait{Invocation: "of the client", For: canister.WaitElicitation, Head: canister.Head{Extra: canister.Extra{Metadata: clienttools.Mark()}}},
		canister.Wait{Invocation: "of the server", For: canister.WaitApproval},
	}
	if kept := httpapi.KeptOf(canister.Result{Invocation: "of the server", Content: text}, calls...); canister.TextOf(canister.ContentOf(kept)) != "long" {
		t.Errorf("the response needs the result of the server, and has %v", kept)
	}
	for _, c := range []canister.Canister{
		canister.User{Head: head, Content: text},
		canister.Answer{Head: head, Wait: "w", Content: text, Arguments: []byte(`"long"`), Reason: "long"},
		canister.Result{Head: head, Invocation: "of the client", Content: text},
	} {
		kept := httpapi.KeptOf(c, calls...)
		if line, err := canister.Marshal(kept); err != nil || bytes.Contains(line, []byte("long")) || kept.Kind() != c.Kind() {
			t.Errorf("%s, %v", line, err)
		}
	}
}

// TestRunsHoldTheirIDs: a run of AG-UI needs the IDs of the calls that its client has until it ends.
func TestRunsHoldTheirIDs(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxBody, o.MaxBodies = 100_000, 150_000 })
	for i, c := range []struct{ ids, length, status int }{
		{1, 10, http.StatusCreated}, {1, 70_000, http.StatusTooManyRequests}, {1400, 4, http.StatusTooManyRequests},
	} {
		var messages []object
		for n := range c.ids {
			messages = append(messages, object{"role": "tool", "toolCallId": fmt.Sprintf("%0*d", c.length, n), "content": "x"})
		}
		messages = append(messages, object{"id": "m", "role": "user", "content": "block"})
		response := s.open("POST", "/agui", object{"threadId": strconv.Itoa(i), "runId": "r", "messages": messages})
		events := bufio.NewScanner(response.Body)
		for events.Scan() && !strings.Contains(events.Text(), "TEXT_MESSAGE_START") {
		}
		s.want(c.status, "POST", "/api/conversations", object{"message": strings.Repeat("y", 70_000)})
		_ = response.Body.Close()
	}
}

// TestAStreamWithHalfABody: the request of a stream whose body does not arrive is answered when the time of the
// http.Server for it is over.
func TestAStreamWithHalfABody(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	slow := httptest.NewUnstartedServer(s.server.Config.Handler)
	slow.Config.ReadTimeout = time.Second
	slow.Start()
	t.Cleanup(slow.Close)
	client, err := net.Dial("tcp", slow.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = fmt.Fprintf(client, "GET /api/conversations/%s/events HTTP/1.1\r\nHost: localhost\r\n%s: ann\r\nContent-Length: 10\r\n\r\n", id, who)
	if line, err := bufio.NewReader(client).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Errorf("%q, %v", line, err)
	}
}

// TestMemoryOfBodies: the bodies of all requests under way have one bound, and a client a fourth.
func TestMemoryOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, store := engineOf(t, echo)
		feed := httpapi.NewFeed(local, store)
		defer feed.Close()
		handler := httpapi.New(feed, &httpapi.Options{MaxBody: 1 << 20, MaxBodies: 4 << 20, Owner: func(ctx context.Context) (string, error) {
			owner, _ := ctx.Value(whoKey{}).(string)
			return owner, nil
		}})
		// begin sends half of a body and returns what sends the rest and the response.
		begin := func(owner, identity, address string) (end func() *recorded) {
			reader, writer := io.Pipe()
			ctx := access.WithIdentity(context.WithValue(t.Context(), whoKey{}, owner), identity)
			request, err := http.NewRequestWithContext(ctx, "POST", "http://localhost/api/conversations", reader)
			if err != nil {
				t.Fatal(err)
			}
			request.RemoteAddr, request.ContentLength = address, 1_000_000
			request.Header.Set("Content-Type", "application/json")
			w := &recorded{header: http.Header{}, done: make(chan struct{})}
			go func() {
				defer close(w.done)
				handler.ServeHTTP(w, request)
				_ = reader.Close()
			}()
			_, _ = writer.Write([]byte(strings.Repeat(" ", 600_000))) // fails if the request is refused
			synctest.Wait()
			return func() *recorded {
				_ = writer.Close()
				<-w.done
				return w
			}
		}
		const one, two = "192.0.2.1:1", "192.0.2.2:1"
		held := []func() *recorded{begin("ann", "", one)}
		if got := begin("ann", "", "192.0.2.1:2")(); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, `"too_many_bodies"`) {
			t.Errorf("the second of a client: %+v", got)
		}
		held = append(held, begin("bob", "", one), begin("ann", "", two), begin("ann", "identity", one))
		if got := begin("eve", "", two)(); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, `"too_many_bodies"`) {
			t.Errorf("one too many: %+v", got)
		}
		for _, end := range held {
			if got := end(); got.status != http.StatusBadRequest || !strings.Contains(got.body, `"invalid_json"`) {
				t.Errorf("a body within the limits: %+v", got)
			}
		}
		if got := begin("ann", "", one)(); got.status != http.StatusBadRequest {
			t.Errorf("the memory was not released: %+v", got)
		}
	})
}

// TestBodiesAreUTF8: a body that is not UTF-8 is refused at each path, because the log is.
func TestBodiesAreUTF8(t *testing.T) {
	s := serve(t, echo, ask, nil)
	id := s.create("call: it")
	s.ended(id, 0)
	at := "/api/conversations/" + id
	wait := s.want(http.StatusOK, "GET", at+"/waits", nil).form["waits"].([]any)[0].(object)["id"].(string)
	for path, body := range map[string]string{
		at + "/waits/" + wait: "{\"verdict\":\"change\",\"arguments\":{\"what\":\"\xff\"}}",
		"/v1/responses":       "{\"input\":\"\xff\"}",
		"/agui":               "{\"threadId\":\"t\",\"runId\":\"r\",\"messages\":[{\"id\":\"m\",\"role\":\"user\",\"content\":\"\xff\"}]}",
	} {
		if got := s.want(http.StatusBadRequest, "POST", path, body); !strings.Contains(got.text, `"invalid_json"`) {
			t.Errorf("%s: got %s", path, got.text)
		}
	}
}

// engineOf returns an engine without conversations and without tools, which is closed at the end of the test.
func engineOf(t *testing.T, m model) (*engine.Local, history.Store) {
	store := history.NewMemory()
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(m, nil, &converse.Options{ID: id, Log: store}), nil
	}
	local, err := engine.NewLocal(store, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return local, store
}

// recorded is a response.
type recorded struct {
	header http.Header
	status int
	body   string
	done   chan struct{} // closed at its end
}

func (r *recorded) Header() http.Header    { return r.header }
func (r *recorded) WriteHeader(status int) { r.status = status }

func (r *recorded) Write(p []byte) (int, error) {
	r.body += string(p)
	return len(p), nil
}

// TestNegativeNumbers: a negative number means the default.
func TestNegativeNumbers(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxBody, o.MaxBodies, o.MaxStreams, o.Heartbeat = -1, -1, -1, -1 })
	id := s.create("hello")
	s.ended(id, 0)
	s.open("GET", "/api/conversations/"+id+"/events", nil).Body.Close()
}
