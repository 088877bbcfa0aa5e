// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/invoker"
)

// ask defers each approval.
func ask(context.Context, converse.Approval) (converse.Decision, error) {
	return converse.Defer(time.Hour, ""), nil
}

// TestConversation: a conversation is created, continued, read, listed and forked.
func TestConversation(t *testing.T) {
	s := serve(t, echo, nil, nil)
	created := s.want(http.StatusCreated, "POST", "/api/conversations", map[string]any{"message": "hello <b>", "tags": []string{"x"}})
	id := created.form["id"].(string)
	if created.header.Get("Location") != "/api/conversations/"+id || created.form["title"] != "hello <b>" {
		t.Errorf("created %s", created.text)
	}
	s.ended(id, 0)
	content := []object{{"type": "text", "text": "again"}}
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", object{"content": content})
	s.ended(id, 3)
	got := s.want(http.StatusOK, "GET", "/api/conversations/"+id+"/history?after=1&limit=2", nil)
	log, _ := history.From(t.Context(), s.store, id, 0)
	line, err := canister.Marshal(log[1])
	if err != nil || !strings.Contains(got.text, `{"position":2,"canister":`+string(line)+`}`) || strings.Contains(got.text, `"position":4`) {
		t.Errorf("the history is %s, the canister %s (%v)", got.text, line, err)
	}
	if after := s.want(http.StatusOK, "GET", "/api/conversations/"+id+"/history?after=99", nil); after.form["length"] != 4.0 {
		t.Errorf("after the end: %s", after.text)
	}
	if state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil).form["state"]; state != "done" {
		t.Errorf("the state is %v", state)
	}
	fork := s.want(http.StatusCreated, "POST", "/api/conversations/"+id+"/fork", map[string]any{"position": 2}).form
	if fork["parent"] != id || fork["length"] != 2.0 {
		t.Errorf("the fork is %v", fork)
	}
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+fork["id"].(string)+"/messages", map[string]any{"message": "in the fork"})
	if _, length := s.ended(fork["id"].(string), 3); length != 4 {
		t.Errorf("the fork has %d canisters", length)
	}
	s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
}

// TestDelete: a conversation is gone, with the turn that is under way and its streams.
func TestDelete(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("block")
	response := s.request("GET", "/api/conversations/"+id+"/events", nil)
	deleted, last := false, ""
	if err := readStream(response, func(e streamed) bool {
		if e.name == "delta" && !deleted {
			deleted = true
			s.want(http.StatusNoContent, "DELETE", "/api/conversations/"+id, nil)
		}
		last = e.name + e.data
		return true
	}); err != nil || !strings.Contains(last, "conversation_not_found") {
		t.Errorf("the stream ended with %s, %v", last, err)
	}
	for _, method := range []string{"GET", "DELETE"} {
		s.want(http.StatusNotFound, method, "/api/conversations/"+id, nil)
	}
}

// TestList: pages of the list have each conversation of the caller once.
func TestList(t *testing.T) {
	s := serve(t, echo, nil, nil)
	want := map[any]bool{}
	for range 7 {
		id := s.create("hello")
		want[id] = true
		s.ended(id, 0) // it moves to the first page when it changes
	}
	s.as("bob").create("of another")
	after, n := "", 0
	for range 9 {
		page := s.want(http.StatusOK, "GET", "/api/conversations?limit=3&after="+after, nil).form
		for _, c := range page["conversations"].([]any) {
			delete(want, c.(map[string]any)["id"])
			n++
		}
		if after, _ = page["next"].(string); after == "" {
			break
		}
	}
	if n != 7 || len(want) != 0 {
		t.Errorf("%d were listed, and not %v", n, want)
	}
}

// TestRepeatedRequests: a request that is repeated with its key has no further effect.
func TestRepeatedRequests(t *testing.T) {
	s := serve(t, echo, nil, nil)
	begin := func(s *served) any {
		return s.want(http.StatusCreated, "POST", "/api/conversations", object{"message": "hello"}, "Idempotency-Key", "k").form["id"]
	}
	var ids []any
	for range 2 {
		ids = append(ids, begin(s))
		s.ended(ids[0].(string), 0)
	}
	id := ids[0].(string)
	if ids[1] != ids[0] || begin(s.as("bob")) == id {
		t.Errorf("the conversations are %v", ids)
	}
	for range 2 {
		s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", map[string]any{"message": "more", "id": "m"})
		if _, length := s.ended(id, 3); length != 4 {
			t.Errorf("%d canisters", length)
		}
	}
}

// TestReusedKeys: a request with the key or the ID of another one, and other contents, is refused, and has no effect. The
// same request again is answered as before.
func TestReusedKeys(t *testing.T) {
	s := serve(t, recites, ask, nil)
	const begin = "/api/conversations"
	said := func(text string) object { return object{"message": text} }
	reused := func(path string, body object, headers ...string) {
		t.Helper()
		before := s.lengths()
		if got := s.want(http.StatusConflict, "POST", path, body, headers...); !strings.Contains(got.text, `"conflict"`) {
			t.Errorf("%s %v: %s", path, body, got.text)
		}
		if after := s.lengths(); !maps.Equal(before, after) {
			t.Errorf("%s %v: the logs had the lengths %v, and have %v", path, body, before, after)
		}
	}
	var id string
	for range 2 {
		id = s.want(http.StatusCreated, "POST", begin, said("A"), "Idempotency-Key", "k").form["id"].(string)
		s.ended(id, 0)
	}
	reused(begin, said("B"), "Idempotency-Key", "k")
	reused(begin, object{"message": "B", "id": "m"}, "Idempotency-Key", "k")
	if title := s.want(http.StatusOK, "GET", begin+"/"+id, nil).form["title"]; title != "A" {
		t.Errorf("the title is %v", title)
	}
	path := begin + "/" + id + "/messages"
	for range 2 { // the key is another one for messages
		s.want(http.StatusAccepted, "POST", path, said("A"), "Idempotency-Key", "k")
		s.want(http.StatusAccepted, "POST", path, object{"message": "fail", "id": "m"})
		s.ended(id, 5)
	}
	reused(path, said("B"), "Idempotency-Key", "k")
	reused(path, object{"message": "B", "id": "m"})
	other := s.create("other")
	stored := s.want(http.StatusAccepted, "POST", begin+"/"+other+"/messages", said("B"), "Idempotency-Key", "k").form["message"]
	const known = "vcktjonb4jbsxj2ungjzo4vmbp" // another version may have stored the message
	if first := ofKind[canister.User](s, id)[0].ID; stored != known || first != known {
		t.Errorf("the messages with the key have the IDs %v and %v", stored, first)
	}
	var texts []string
	for _, message := range ofKind[canister.User](s, id) {
		texts = append(texts, canister.TextOf(message.Content))
	}
	if !slices.Equal(texts, []string{"A", "A", "fail"}) || len(ofKind[canister.User](s, other)) != 2 {
		t.Errorf("the messages are %q", texts)
	}
}

// TestReusedAnswer: another answer with the ID of one that was given is refused.
func TestReusedAnswer(t *testing.T) {
	s := serve(t, echo, ask, nil)
	id := s.create("call: it")
	_, length := s.ended(id, 0)
	path := "/api/conversations/" + id + "/waits/" + ofKind[canister.Wait](s, id)[0].ID
	for range 2 {
		s.want(http.StatusNoContent, "POST", path, object{"id": "x", "verdict": "change", "arguments": object{"what": "one"}})
		s.ended(id, length+1)
	}
	more := func() { // the turn of the answer is not the last one then
		s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", object{"message": "more"})
		s.ended(id, length+4)
	}
	for _, next := range []func(){func() {}, more} {
		next()
		for _, other := range []object{{"id": "x", "verdict": "deny"}, {"id": "x", "verdict": "change", "arguments": object{"what": "two"}}} {
			if got := s.want(http.StatusConflict, "POST", path, other); !strings.Contains(got.text, `"conflict"`) {
				t.Errorf("%v: %s", other, got.text)
			}
		}
	}
	s.want(http.StatusNoContent, "POST", path, object{"id": "x", "verdict": "change", "arguments": object{"what": "one"}})
}

// TestReusedLongAgo: what is refused because its ID was used does not reach the engine, however long ago that was.
func TestReusedLongAgo(t *testing.T) {
	var admitted atomic.Int32
	s := serve(t, echo, ask, func(o *httpapi.Options) {
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			admitted.Add(1)
			return enter(ctx)
		}
	})
	id := s.create("call: it")
	_, length := s.ended(id, 0)
	path := "/api/conversations/" + id
	wait := path + "/waits/" + ofKind[canister.Wait](s, id)[0].ID
	s.want(http.StatusNoContent, "POST", wait, object{"id": "x", "verdict": "deny"})
	_, length = s.ended(id, length+1)
	s.want(http.StatusAccepted, "POST", path+"/messages", object{"message": "A", "id": "m"})
	_, length = s.ended(id, length+1)
	var more []canister.Canister
	for i := range 35 {
		said, answered := canister.Head{ID: fmt.Sprint("said", i)}, canister.Head{ID: fmt.Sprint("answered", i), Time: time.Now().Add(-time.Minute)}
		more = append(more, canister.User{Head: said, Content: canister.Texts("hello")}, canister.Assistant{Head: answered, Content: canister.Texts("hello"), Finish: canister.FinishStop})
	}
	if err := s.store.Append(t.Context(), id, length, more...); err != nil {
		t.Fatal(err)
	}
	before := admitted.Load()
	s.want(http.StatusConflict, "POST", path+"/messages", object{"message": "B", "id": "m"})
	s.want(http.StatusConflict, "POST", wait, object{"id": "x", "verdict": "allow"})
	if n := admitted.Load() - before; n != 0 {
		t.Errorf("%d reached the engine", n)
	}
	s.want(http.StatusAccepted, "POST", path+"/messages", object{"message": "A", "id": "m"})
	s.want(http.StatusNoContent, "POST", wait, object{"id": "x", "verdict": "deny"})
}

// TestTakenID: a message with the ID of another canister of its conversation is refused.
func TestTakenID(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 0)
	taken := ofKind[canister.Assistant](s, id)[0].ID
	got := s.want(http.StatusConflict, "POST", "/api/conversations/"+id+"/messages", object{"message": "more", "id": taken})
	if !strings.Contains(got.text, `"conflict"`) || !strings.Contains(got.text, taken) || !strings.Contains(got.text, "Send it with another one.") {
		t.Errorf("got %s", got.text)
	}
}

// TestWaits: an approval is listed and answered, once, and the conversation continues.
func TestWaits(t *testing.T) {
	s := serve(t, echo, ask, nil)
	id := s.create("call: it")
	ended, length := s.ended(id, 0)
	if ended.Reason != converse.ReasonWaiting {
		t.Fatalf("the turn ended: %+v", ended)
	}
	refused := s.want(http.StatusConflict, "POST", "/api/conversations/"+id+"/messages", object{"message": "hurry"})
	if !strings.Contains(refused.text, "conversation_waits") {
		t.Errorf("got %s", refused.text)
	}
	state := s.want(http.StatusOK, "GET", "/api/conversations/"+id, nil)
	wait := s.want(http.StatusOK, "GET", "/api/conversations/"+id+"/waits", nil).form["waits"].([]any)[0].(map[string]any)
	if wait["tool"] != "local__do" || wait["arguments"] != `{"what":"it"}` || state.form["state"] != "waiting" {
		t.Errorf("the wait is %v, the state %s", wait, state.text)
	}
	path := "/api/conversations/" + id + "/waits/" + wait["id"].(string)
	s.want(http.StatusBadRequest, "POST", path, map[string]any{"verdict": "done"})
	s.want(http.StatusBadRequest, "POST", path, map[string]any{"verdict": "change", "arguments": 1})
	s.want(http.StatusConflict, "POST", "/api/conversations/"+id+"/waits/other", map[string]any{"verdict": "allow"})
	s.as("bob").want(http.StatusNotFound, "POST", path, map[string]any{"verdict": "allow"})
	taken := s.want(http.StatusConflict, "POST", path, object{"id": wait["id"], "verdict": "allow"})
	if !strings.Contains(taken.text, `"conflict"`) {
		t.Errorf("got %s", taken.text)
	}
	for range 2 {
		s.want(http.StatusNoContent, "POST", path, map[string]any{"id": "a", "verdict": "allow"})
	}
	ended, length = s.ended(id, length+1)
	s.want(http.StatusConflict, "POST", path, map[string]any{"verdict": "deny"})
	log, _ := history.From(t.Context(), s.store, id, 0)
	if last := canister.TextOf(canister.ContentOf(log[length-1])); ended.Reason != converse.ReasonAnswered || last != "You said: did it" {
		t.Errorf("it ended with %+v and %q", ended, last)
	}
}

// TestAnotherAnswers: a wait that names a person is not answered by another caller.
func TestAnotherAnswers(t *testing.T) {
	boss := func(context.Context, converse.Approval) (converse.Decision, error) {
		return converse.Defer(time.Hour, "boss"), nil
	}
	name := "ann"
	s := serve(t, echo, boss, func(o *httpapi.Options) { o.Name = func(context.Context) string { return name } })
	id := s.create("call: it")
	_, length := s.ended(id, 0)
	waits := s.want(http.StatusOK, "GET", "/api/conversations/"+id+"/waits", nil).form["waits"].([]any)
	path := "/api/conversations/" + id + "/waits/" + waits[0].(object)["id"].(string)
	refused := s.want(http.StatusForbidden, "POST", path, object{"verdict": "allow"})
	if !strings.Contains(refused.text, "not_yours_to_answer") {
		t.Errorf("got %s", refused.text)
	}
	name = "boss"
	s.want(http.StatusNoContent, "POST", path, object{"verdict": "allow"})
	if ended, _ := s.ended(id, length+1); ended.Reason != converse.ReasonAnswered {
		t.Errorf("it ended with %+v", ended)
	}
}

// TestAnswerWhileAnotherCallIsMade: a wait is answered, and by its person alone, while another call of
// the turn is under way.
func TestAnswerWhileAnotherCallIsMade(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	boss := func(ctx context.Context, a converse.Approval) (converse.Decision, error) {
		if strings.Contains(a.Invocation.Arguments, "0") {
			return converse.Defer(time.Hour, "boss"), nil
		}
		close(begun)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return converse.Decision{}, ctx.Err()
	}
	var name atomic.Value
	name.Store("ann")
	s := serve(t, uses, boss, func(o *httpapi.Options) { o.Name = func(context.Context) string { return name.Load().(string) } })
	id := s.create("use local__do local__do")
	<-begun
	path := "/api/conversations/" + id + "/waits/" + s.waitIn(id)
	for _, body := range []object{{"verdict": "allow", "id": "a"}, {"verdict": "allow"}} {
		if got := s.want(http.StatusForbidden, "POST", path, body); !strings.Contains(got.text, "not_yours_to_answer") {
			t.Errorf("got %s", got.text)
		}
	}
	name.Store("boss")
	s.want(http.StatusBadRequest, "POST", path, object{"verdict": "accept", "id": "b"})
	s.want(http.StatusNoContent, "POST", path, object{"verdict": "allow", "id": "b"})
	close(release)
	for after := 0; ; {
		ended, length := s.ended(id, after)
		if after = length; ended.Reason == converse.ReasonAnswered {
			return
		}
	}
}

// waitIn returns the ID of the first wait of a log, when it is there.
func (s *served) waitIn(id string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for event, err := range s.engine.Watch(ctx, id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if added, is := event.(engine.Added); is && added.Canister.Kind() == canister.KindWait {
			return added.Canister.Header().ID
		}
	}
	s.t.Fatal("the engine is closed")
	return ""
}

// TestCancel: a turn that is under way ends.
func TestCancel(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("block")
	response := s.request("GET", "/api/conversations/"+id+"/events", nil)
	err := readStream(response, func(e streamed) bool { return e.name != "delta" })
	if err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusNoContent, "POST", "/api/conversations/"+id+"/cancel", nil)
	if ended, _ := s.ended(id, 1); ended.Reason != converse.ReasonCancelled {
		t.Errorf("it ended with %+v", ended)
	}
}

// TestForeignConversation: a foreign ID is answered exactly as one that does not exist.
func TestForeignConversation(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 0)
	eve := s.as("eve")
	for _, one := range []struct{ method, path string }{
		{"GET", ""}, {"GET", "/history"}, {"GET", "/events"}, {"GET", "/waits"},
		{"POST", "/messages"}, {"POST", "/cancel"}, {"POST", "/fork"}, {"POST", "/waits/x"}, {"DELETE", ""},
	} {
		var body any
		if one.method == "POST" {
			body = map[string]any{"message": "x"}
		}
		foreign := eve.want(http.StatusNotFound, one.method, "/api/conversations/"+id+one.path, body)
		for _, guess := range []string{"none", strings.Repeat("x", 300), "%00", "a%2Fb"} {
			missing := eve.want(http.StatusNotFound, one.method, "/api/conversations/"+guess+one.path, body)
			foreign.header.Del("Date")
			missing.header.Del("Date")
			if foreign.text != missing.text || len(foreign.header) != len(missing.header) {
				t.Errorf("%s %s: foreign %s, missing %s", one.method, one.path, foreign.text, missing.text)
			}
		}
	}
	if _, length := s.ended(id, 0); length != 2 {
		t.Errorf("the conversation has %d canisters now", length)
	}
	if got := s.as("").want(http.StatusUnauthorized, "GET", "/api/conversations", nil); got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("the challenge of a caller that is not known: %v", got.header)
	}
	w := httptest.NewRecorder()
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
	httpapi.WriteError(w, invoker.Failf(invoker.Unauthorized, "Nobody knows you."))
	if got := w.Header().Values("WWW-Authenticate"); w.Code != http.StatusUnauthorized || len(got) != 1 || got[0] == "Bearer" {
		t.Errorf("the challenge of a handler around: %q", got)
	}
}

// TestHostileRequests: what is wrong is refused, with a code and an advice.
func TestHostileRequests(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) {
		o.MaxBody, o.MaxStreams = 1000, 1
		o.Origins = []string{"https://good.example"}
		o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
			if ctx.Value(whoKey{}) == "poor" {
				return invoker.UnavailableFor(time.Minute, "You may send no more.")
			}
			return enter(ctx)
		}
	})
	id := s.create("hello")
	_, length := s.ended(id, 0)
	at := "/api/conversations/" + id
	evil, longKey := []string{"Origin", "https://evil.example"}, []string{"Idempotency-Key", strings.Repeat("k", 300)}
	for _, one := range []struct {
		name, method, path string
		body               any
		headers            []string
		status             int
		code               string
	}{
		{"no JSON", "POST", "/api/conversations", "{", nil, 400, "invalid_json"},
		{"cut JSON", "POST", "/api/conversations", `{"message":`, nil, 400, "cannot be read as JSON"},
		{"a list", "POST", "/api/conversations", `[1]`, nil, 400, "is a JSON array, not a JSON object"},
		{"a list for OpenAI", "POST", "/v1/responses", `[1]`, nil, 400, "is a JSON array, not a JSON object"},
		{"null for OpenAI", "POST", "/v1/responses", `null`, nil, 400, "is null, not a JSON object"},
		{"a list for AG-UI", "POST", "/agui", `[1]`, nil, 400, "is a JSON array, not a JSON object"},
		{"two documents", "POST", "/api/conversations", `{"message":"x"} {}`, nil, 400, "invalid_json"},
		{"an unknown member", "POST", "/api/conversations", `{"message":"x","owner":"ann"}`, nil, 400, `"param":"owner"`},
		{"a wrong type", "POST", "/api/conversations", `{"message":1}`, nil, 400, `"param":"message"`},
		{"nothing to say", "POST", "/api/conversations", `{}`, nil, 400, `"param":"message"`},
		{"wrong content", "POST", "/api/conversations", `{"content":[{"type":"nonsense"}]}`, nil, 400, `"param":"content"`},
		{"a NUL in the title", "POST", "/api/conversations", `{"message":"x","title":"a\u0000"}`, nil, 400, `"param":"title"`},
		{"a huge body", "POST", "/api/conversations", `{"message":"` + strings.Repeat("x", 1000) + `"}`, nil, 413, "too_large"},
		{"a form", "POST", "/api/conversations", "message=x", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "not_json"},
		{"a foreign origin", "POST", "/api/conversations", `{"message":"x"}`, evil, 403, "origin_not_allowed"},
		{"a foreign origin reads", "GET", at + "/events", nil, []string{"Origin", "null"}, 403, "origin_not_allowed"},
		{"a key that is too long", "POST", at + "/messages", `{"message":"x"}`, longKey, 400, "Idempotency-Key"},
		{"an ID that is too long", "POST", at + "/messages", `{"message":"x","id":"` + strings.Repeat("k", 300) + `"}`, nil, 400, `"param":"id"`},
		{"a wrong event", "GET", at + "/events", nil, []string{"Last-Event-ID", "1.2"}, 400, `"param":"Last-Event-ID"`},
		{"a wrong event in the query", "GET", at + "/events?after=x", nil, nil, 400, `"param":"after"`},
		{"an event that is not there yet", "GET", at + "/events", nil, []string{"Last-Event-ID", "99"}, 409, "unknown_position"},
		{"a wrong number", "GET", at + "/history?after=-1", nil, nil, 400, `"param":"after"`},
		{"a damaged query", "GET", "/api/conversations?text=a;b", nil, nil, 400, `"code":"invalid_request"`},
		{"a wrong page", "GET", "/api/conversations?after=x", nil, nil, 400, `"param":"after"`},
		{"a fork of too much", "POST", at + "/fork", `{"position":99}`, nil, 400, `"param":"position"`},
		{"a fork of nothing", "POST", at + "/fork", `{"position":0}`, nil, 400, `"param":"position"`},
		{"a wrong path", "GET", "/api/nothing", nil, nil, 404, "not_found"},
		{"a wrong method", "PUT", at, nil, nil, 405, "method_not_allowed"},
	} {
		a := s.want(one.status, one.method, one.path, one.body, one.headers...)
		if !strings.Contains(a.text, one.code) || !strings.Contains(a.text, `"advice"`) {
			t.Errorf("%s: %s", one.name, a.text)
		}
	}
	poor := s.as("poor").want(http.StatusTooManyRequests, "POST", "/api/conversations", `{"message":"x"}`)
	if poor.header.Get("Retry-After") != "60" || !strings.Contains(poor.text, "You may send no more.") {
		t.Errorf("a budget: %s", poor.text)
	}
	s.want(http.StatusCreated, "POST", "/api/conversations", `{"message":"x"}`, "Origin", "https://good.example")
	first := s.request("GET", at+"/events", nil)
	s.want(http.StatusTooManyRequests, "GET", at+"/events", nil)
	_ = first.Body.Close()
	if _, now := s.ended(id, 0); now != length {
		t.Errorf("the conversation has %d canisters now", now)
	}
}

// TestTooManyBodies: the bodies of all requests have a bound together.
func TestTooManyBodies(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxBody, o.MaxBodies = 1000, 1500 })
	reader, writer := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.server.URL+"/api/conversations", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(who, "ann")
	request.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() {
		response, err := s.server.Client().Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		ended <- err
	}()
	if _, err := writer.Write([]byte(`{"message":`)); err != nil {
		t.Fatal(err)
	}
	long := map[string]any{"message": strings.Repeat("x", 800)}
	for isFull := false; !isFull; {
		a := s.as("bob").do("POST", "/api/conversations", long) // ann has her fourth already
		if isFull = a.status == http.StatusServiceUnavailable; !isFull && a.status != http.StatusCreated {
			t.Fatalf("got %s", a.text)
		}
	}
	if _, err := writer.Write([]byte(`"hello"}`)); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusCreated, "POST", "/api/conversations", long)
}

// TestSilentStream: a stream with nothing to say sends comments.
func TestSilentStream(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 0)
	response := s.request("GET", "/api/conversations/"+id+"/events?after=2-end", nil)
	defer response.Body.Close()
	buffer := make([]byte, 64)
	text := ""
	for !strings.Contains(text, "\n:\n") {
		n, err := response.Body.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		text += string(buffer[:n])
	}
	if strings.Contains(text, "data") || strings.Contains(text, "\n\n") {
		t.Errorf("got %q", text)
	}
}

// TestDeletedConversation: the stream of a conversation that is deleted ends with an error.
func TestDeletedConversation(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 0)
	last := streamed{}
	err := readStream(s.request("GET", "/api/conversations/"+id+"/events", nil), func(e streamed) bool {
		if last = e; e.name == "ended" {
			if err := s.store.Delete(t.Context(), id, history.AnyLength); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || last.name != "error" || !strings.Contains(last.data, "conversation_not_found") {
		t.Errorf("%v, at last %+v", err, last)
	}
	checkSchema(t, "/components/schemas/Error", last.data)
}

// TestTitleIsOneLine: lists on a terminal have one line for each conversation.
func TestTitleIsOneLine(t *testing.T) {
	s := serve(t, echo, nil, nil)
	a := s.want(http.StatusCreated, "POST", "/api/conversations", object{"message": "hello", "title": "a\n\x1b[2Jb\tc"})
	if got := a.form["title"]; got != "a [2Jb c" {
		t.Errorf("the title is %q", got)
	}
}

// TestThreadID: the error of a thread ID says whether it is missing or too long.
func TestThreadID(t *testing.T) {
	s := serve(t, echo, nil, nil)
	for thread, part := range map[string]string{"": "missing", strings.Repeat("x", 257): "more than 256 bytes"} {
		if a := s.want(http.StatusBadRequest, "POST", "/agui", object{"threadId": thread, "runId": "r"}); !strings.Contains(a.text, part) {
			t.Errorf("%q: %s", thread, a.text)
		}
	}
}

// TestDefaultOptions: a request that brings earlier messages begins a conversation without Options.Open, too.
func TestDefaultOptions(t *testing.T) {
	s := serve(t, echo, nil, nil)
	s.server.Close()
	s.server = httptest.NewServer(httpapi.New(s.feed, nil))
	messages := []object{{"role": "system", "content": "Be brief."}, {"id": "m", "role": "user", "content": "hello"}}
	s.want(http.StatusOK, "POST", "/v1/chat/completions", object{"messages": messages})
	s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello", "instructions": "Be brief."})
	run := s.want(http.StatusOK, "POST", "/agui", object{"threadId": "t", "runId": "r", "messages": messages})
	if !strings.Contains(run.text, "RUN_FINISHED") {
		t.Errorf("the run: %s", run.text)
	}
}
