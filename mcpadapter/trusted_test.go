// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

var user = invoker.NewTrusted[string]("user")

// trusting opens a connection to s that says for whom its calls are.
func trusting(t *testing.T, s *scripted) ensemble.Connection {
	t.Helper()
	return open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
		ClientOptions:  mcpadapter.ClientOptions{Protocol: "2025-11-25"},
		BearerToken:    "of-the-program",
		TrustedHeaders: map[string]string{"X-User": "user"},
	}))
}

// mirror answers calls with the header that came with them, once two are there.
func mirror(t *testing.T) (s *scripted, both *sync.WaitGroup) {
	both = new(sync.WaitGroup)
	s = newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
		if m.Method != "tools/call" {
			return false
		}
		both.Done()
		both.Wait()
		reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Header.Get("X-User")))
		return true
	})
	return s, both
}

// TestTrustedHeaders: calls of two users at the same time, over one connection,
// carry each their own header, and nothing else carries any.
func TestTrustedHeaders(t *testing.T) {
	s, both := mirror(t)
	both.Add(2)
	c := trusting(t, s)
	read := tool(t, c, "read")
	var all sync.WaitGroup
	for _, name := range []string{"ada", "bob"} {
		all.Go(func() {
			out, err := read.Invoke(invoker.WithTrusted(within(t), user.Is(name)), &invoker.Call{})
			if err != nil || len(out.Content) != 1 || !strings.Contains(fmt.Sprint(out.Content[0]), name) {
				t.Errorf("the call of %s: %v, %v", name, out.Content, err)
			}
		})
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.got {
		if has := m.Header.Get("X-User") != ""; has != (m.Method == "tools/call") {
			t.Errorf("%s has the header: %v", m.Method, has)
		}
	}
}

// TestTrustedHeaderMissing: without the value, or with one that is no header,
// nothing is sent.
func TestTrustedHeaderMissing(t *testing.T) {
	s, both := mirror(t)
	both.Add(1)
	c := trusting(t, s)
	read := tool(t, c, "read")
	if needs := read.Definition().Needs; len(needs) != 1 || needs[0] != "user" {
		t.Errorf("the tool needs %q", needs)
	}
	for _, value := range []string{"", "ada\r\nX-Admin: yes", " ada"} {
		ctx := within(t)
		if value != "" {
			ctx = invoker.WithTrusted(ctx, user.Is(value))
		}
		_, err := read.Invoke(ctx, &invoker.Call{})
		if code(err) != invoker.Unauthorized || value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("the value %q: %v", value, err)
		}
	}
	if n := len(s.received("tools/call")); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	if _, err := read.Invoke(invoker.WithTrusted(within(t), user.Is("ada")), &invoker.Call{}); err != nil {
		t.Errorf("a call afterwards: %v", err)
	}
}

// TestTrustedHeaderOfRead: reads carry it, lists do not.
func TestTrustedHeaderOfRead(t *testing.T) {
	s := newScripted(t, func(w http.ResponseWriter, _ *http.Request, m message) bool {
		switch m.Method {
		case "initialize":
			reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case "resources/list":
			reply(w, m, `{"resources":[{"uri":"file:///a","name":"a"}]}`)
		case "resources/read":
			reply(w, m, `{"contents":[{"uri":"file:///a","text":"A"}]}`)
		case "resources/subscribe":
			reply(w, m, `{}`)
		default:
			return false
		}
		return true
	})
	c := trusting(t, s).(ensemble.Library)
	ctx := invoker.WithTrusted(within(t), user.Is("ada"))
	_, err1 := c.Resources(ctx)
	_, err2 := c.Read(ctx, "file:///a")
	if err3 := c.Subscribe(ctx, "file:///a"); err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for method, want := range map[string]string{"resources/list": "", "resources/read": "ada", "resources/subscribe": ""} {
		if got := s.received(method)[0].Header.Get("X-User"); got != want {
			t.Errorf("%s has the header %q, want %q", method, got, want)
		}
	}
	if _, err := c.Read(within(t), "file:///a"); code(err) != invoker.Unauthorized || !strings.Contains(err.Error(), `needs the trusted value "user"`) {
		t.Errorf("a read without the user: %v", err)
	}
}

// TestTrustedHeaderRedirected: a redirect within the origin, which other
// requests follow, is refused.
func TestTrustedHeaderRedirected(t *testing.T) {
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
		if m.Method != "tools/call" || r.URL.Path != "/" {
			return false
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return true
	})
	read := tool(t, trusting(t, s), "read")
	_, err := read.Invoke(invoker.WithTrusted(within(t), user.Is("ada")), &invoker.Call{})
	if code(err) != invoker.Protocol || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a call that is redirected: %v", err)
	}
	if calls := s.received("tools/call"); len(calls) != 1 {
		t.Errorf("%d requests were sent", len(calls))
	}
}
