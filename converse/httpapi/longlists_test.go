// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/httpapi"
)

// TestLongLists: a list of a request that would take much more memory than its JSON is refused, and so are several lists
// of calls.
func TestLongLists(t *testing.T) {
	s := serve(t, echo, nil, nil)
	list := func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }
	run := `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hello"}],"MEMBER":LIST}`
	chat := `{"messages":[{"role":"user","content":"hello"}],"MEMBER":LIST}`
	for _, c := range []struct{ path, form, member string }{
		{"/agui", run, "messages"}, {"/agui", run, "tools"}, {"/agui", run, "context"}, {"/agui", run, "resume"},
		{"/agui", `{"threadId":"t","runId":"r","messages":[{"role":"assistant","MEMBER":LIST}]}`, "toolCalls"},
		{"/agui", `{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","MEMBER":LIST}]}`, "content"},
		{"/v1/chat/completions", chat, "messages"}, {"/v1/chat/completions", chat, "tools"},
		{"/v1/chat/completions", `{"messages":[{"role":"assistant","MEMBER":LIST},{"role":"user","content":"hello"}]}`, "tool_calls"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","MEMBER":LIST}]}`, "content"},
		{"/v1/responses", `{"MEMBER":LIST}`, "input"},
	} {
		body := strings.Replace(c.form, "MEMBER", c.member, 1)
		got := s.want(http.StatusRequestEntityTooLarge, "POST", c.path, strings.Replace(body, "LIST", list(16<<10+1), 1))
		if !strings.Contains(got.text, "A list of the request has more than 16384 elements, or its messages have more calls.") {
			t.Errorf("%s of %s: %s", c.member, c.path, got.text)
		}
	}
	half := `{"role":"assistant","tool_calls":` + list(8<<10+1) + `},`
	s.want(http.StatusRequestEntityTooLarge, "POST", "/v1/chat/completions", `{"messages":[`+half+half+`{"role":"user","content":"hello"}]}`)
	if lengths := s.lengths(); len(lengths) != 0 {
		t.Errorf("the conversations are %v", lengths)
	}
}

// TestWaitingRequestsHoldNoMessages: a request that waits for a turn keeps its message, and not all that it has read.
// It turns red if a run keeps its input, or a chat its messages, until the message has entered.
func TestWaitingRequestsHoldNoMessages(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // also the pools
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, path := range []string{"/agui", "/v1/chat/completions"} {
		hold, waiting, release := false, make(chan struct{}), make(chan struct{})
		s := serve(t, echo, nil, func(o *httpapi.Options) {
			o.Admit = func(ctx context.Context, _ httpapi.Entry, enter func(context.Context) error) error {
				if hold {
					waiting <- struct{}{}
					<-release
				}
				return enter(ctx)
			}
		})
		var messages []object
		body := object{"threadId": "t", "runId": "r"}
		for range 8000 {
			messages = append(messages, user("hello"))
		}
		if path != "/agui" {
			body = object{}
		}
		ask := func(text string) object {
			messages = append(messages, object{"id": fmt.Sprint(len(messages)), "role": "user", "content": text})
			body["messages"] = messages
			return body
		}
		first := s.begin(t.Context(), path, ask("one"))
		<-first.done
		said := "You said: one"
		if path != "/agui" {
			var form object
			if err := json.Unmarshal([]byte(first.body), &form); err != nil {
				t.Fatal(err)
			}
			said = chatText(answer{form: form})
		}
		messages = append(messages, assistant(said))
		before := heap()
		hold = true
		second := s.begin(t.Context(), path, ask("two"))
		<-waiting
		if more := heap() - before; more > 512<<10 {
			t.Errorf("%s: the request holds %d bytes", path, more)
		}
		hold = false
		close(release)
		if <-second.done; second.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, second.status, second.body)
		}
	}
}
