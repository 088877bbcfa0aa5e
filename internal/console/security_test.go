// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/console"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/mcpadapter/server"
)

// stored puts a conversation of an owner into the store.
func stored(t testing.TB, store history.Store, name, owner string, canisters ...canister.Canister) {
	t.Helper()
	if len(canisters) == 0 {
		canisters = []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("the secret plan")},
			canister.Assistant{Head: canister.Head{ID: "a"}, Content: canister.Texts("noted"), Finish: canister.FinishStop}}
	}
	if err := store.Append(t.Context(), name, 0, canisters...); err != nil {
		t.Fatal(err)
	}
	if err := store.Describe(t.Context(), name, history.Change{Owner: &owner}); err != nil {
		t.Fatal(err)
	}
}

// A login needs a token with access. Its session has a new ID that scripts cannot read and
// other sites cannot send, and ends with the token or the logout.
func TestLogin(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stranger := s.Stranger(t)
	for _, path := range []string{"/", "/conversations", "/waiting", "/tools", "/audit", "/spend"} {
		if reply := stranger.Get(path); reply.StatusCode != http.StatusSeeOther || reply.Header.Get("Location") != "/console/login" {
			t.Errorf("%s: %s to %s", path, reply.Status, reply.Header.Get("Location"))
		}
	}
	if page := stranger.Get("/login").Text; !strings.Contains(page, `maxlength="16384"`) { // the longest token of an issuer
		t.Errorf("the form cuts tokens:\n%s", page)
	}
	for token, want := range map[string]int{"": 401, "wrong": 401, "a b": 401, consolestage.Off: 403, consolestage.Ada: 303} {
		reply := stranger.Do(http.MethodPost, "/login", url.Values{"token": {token}})
		if reply.StatusCode != want || (len(reply.Cookies()) > 0) != (want == 303) {
			t.Errorf("%q: %s with %d cookies", token, reply.Status, len(reply.Cookies()))
		}
	}
	fixed := s.Stranger(t)
	fixed.Cookie = "consort_console=CHOSENBYANOTHERPERSON"
	reply := fixed.Do(http.MethodPost, "/login", url.Values{"token": {consolestage.Ada}}, "Origin", s.URL[:strings.Index(s.URL, "/console")])
	cookie := reply.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/console" ||
		cookie.Value == "CHOSENBYANOTHERPERSON" || len(cookie.Value) < 20 {
		t.Errorf("the cookie is %v", cookie)
	}
	if cookie.Secure {
		t.Error("the cookie is secure without TLS: browsers would drop it")
	}
	if stranger.Get("/", "Cookie", "consort_console=CHOSENBYANOTHERPERSON").StatusCode != http.StatusSeeOther {
		t.Error("an ID that another person chose is a session")
	}
}

// Over TLS, another host of the domain cannot plant the cookie of its own session.
func TestCookieOverTLS(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	behind := []string{"X-Forwarded-Proto", "https"}
	cookie := s.Stranger(t).Do(http.MethodPost, "/login", url.Values{"token": {consolestage.Ada}}, behind...).Cookies()[0]
	if !cookie.Secure || !strings.HasPrefix(cookie.Name, "__Host-") || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
	plain, _ := strings.CutPrefix(cookie.Name, "__Host-")
	for planted, want := range map[string]int{
		cookie.Name + "=" + cookie.Value:                           http.StatusOK,
		plain + "=" + cookie.Value:                                 http.StatusSeeOther,
		plain + "=x; " + cookie.Name + "=" + cookie.Value:          http.StatusOK,
		plain + "=" + cookie.Value + "; " + cookie.Name + "=WRONG": http.StatusSeeOther,
	} {
		for _, headers := range [][]string{nil, behind} { // a proxy may not say that it ended TLS
			if reply := s.Stranger(t).Get("/", append([]string{"Cookie", planted}, headers...)...); reply.StatusCode != want {
				t.Errorf("%q %q: %s", planted, headers, reply.Status)
			}
		}
	}
}

// A cookie of an earlier session over TLS does not hide a session over plain HTTP on the same
// machine, to which browsers send both.
func TestStaleCookie(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	ada.Cookie = "__Host-consort_console=STALE; " + ada.Cookie
	if reply := ada.Get("/"); reply.StatusCode != http.StatusOK {
		t.Errorf("with a stale cookie: %s", reply.Status)
	}
	if reply := ada.Get("/", "X-Forwarded-Proto", "https"); reply.StatusCode != http.StatusSeeOther {
		t.Errorf("over TLS the other cookie counts: %s", reply.Status)
	}
	if reply := ada.Post("/logout"); reply.StatusCode != http.StatusSeeOther || ada.Get("/").StatusCode != http.StatusSeeOther {
		t.Errorf("after the logout the session continues: %s", reply.Status)
	}
}

// Behind a proxy that ends TLS and does not say so, the session of a link sends forms, too. That of another login over
// plain HTTP does not: another host of the domain can have planted its cookie.
func TestLinkBehindTLS(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	visitor := s.Stranger(t)
	visitor.Take(visitor.Get(strings.TrimPrefix(s.Console.Link(consolestage.Ops), "/console")))
	origin := "https://" + strings.TrimPrefix(strings.TrimSuffix(s.URL, "/console"), "http://")
	send := func(p *consolestage.Person) int {
		return p.Do(http.MethodPost, "/conversations", url.Values{"form_token": {p.Form}, "message": {"Do it."}}, "Origin", origin).StatusCode
	}
	if status := send(visitor); status != http.StatusSeeOther {
		t.Errorf("with a link: status %d", status)
	}
	if status := send(s.Login(t, consolestage.Ops)); status != http.StatusUnauthorized {
		t.Errorf("with the cookie of a login over plain HTTP: status %d", status)
	}
	if reply := visitor.Do(http.MethodPost, "/logout", url.Values{"form_token": {visitor.Form}}, "Origin", origin); reply.StatusCode != http.StatusSeeOther ||
		visitor.Get("/").StatusCode != http.StatusSeeOther {
		t.Errorf("the session goes on after its end: %s", reply.Status)
	}
}

// A session ends with its logout, its age and its token, and a new login ends the one before.
func TestSessionsEnd(t *testing.T) {
	var later time.Duration
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return time.Now().Add(later) }})
	in := func(p *consolestage.Person) bool { return p.Get("/").StatusCode == http.StatusOK }
	out := s.Login(t, consolestage.Ada)
	if reply := out.Post("/logout"); reply.StatusCode != http.StatusSeeOther || in(out) {
		t.Errorf("after the logout: %s", reply.Status)
	}
	again := s.Login(t, consolestage.Ada)
	again.Do(http.MethodPost, "/login", url.Values{"token": {consolestage.Ada}})
	if in(again) {
		t.Error("the session continues after another login with its cookie")
	}
	idle := s.Login(t, consolestage.Ada)
	later = 13 * time.Hour
	if in(idle) {
		t.Error("an idle session continues")
	}
	withdrawn := s.Login(t, consolestage.Ada)
	s.MCP.SetAccess(&server.Options{Tokens: []server.BearerToken{{Token: consolestage.Ben, Name: "ben"}}})
	if in(withdrawn) {
		t.Error("a session continues without its token")
	}
}

// A person who logs in again and again ends the own sessions, the oldest first, and none of others.
func TestManySessions(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ben, first := s.Login(t, consolestage.Ben), s.Login(t, consolestage.Ada)
	in := func(p *consolestage.Person) bool { return p.Get("/").StatusCode == http.StatusOK }
	stranger := s.Stranger(t)
	for i := range 1000 {
		if reply := stranger.Do(http.MethodPost, "/login", url.Values{"token": {consolestage.Ada}}); reply.StatusCode != http.StatusSeeOther {
			t.Fatalf("login %d: %s", i, reply.Status)
		}
	}
	if !in(ben) {
		t.Error("the session of another person has ended")
	}
	if last := s.Login(t, consolestage.Ada); in(first) || !in(last) {
		t.Errorf("the first session of the person is open: %t, the last: %t", in(first), in(last))
	}
}

// A link logs its first visitor in as an operator, for a while.
func TestLink(t *testing.T) {
	var later time.Duration
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return time.Now().Add(later) }})
	path := func(link string) string { return strings.TrimPrefix(link, "/console") }
	link := path(s.Console.Link(consolestage.Ben))
	visitor := s.Stranger(t)
	reply := visitor.Get(link)
	visitor.Take(reply)
	if reply.StatusCode != http.StatusOK || visitor.Get("/audit").StatusCode != http.StatusOK {
		t.Errorf("the link: %s", reply.Status)
	}
	if reply.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Error("the address with the code can reach other sites")
	}
	if trail, err := os.ReadFile(s.Audit); err != nil || !regexp.MustCompile(`"asker":"console","client_name":"ben".*"tool":"login","arguments":{"with":"link"}`).Match(trail) {
		t.Errorf("%v; the audit lacks the login:\n%s", err, trail)
	}
	late, withdrawn := path(s.Console.Link(consolestage.Ben)), path(s.Console.Link("unknown"))
	for _, used := range []string{link, "/link?code=", "/link?code=GUESS", withdrawn} {
		if reply := s.Stranger(t).Get(used); reply.StatusCode != http.StatusForbidden || len(reply.Cookies()) > 0 {
			t.Errorf("%s: %s", used, reply.Status)
		}
	}
	later = 25 * time.Hour
	if reply := s.Stranger(t).Get(late); reply.StatusCode != http.StatusForbidden {
		t.Errorf("an old link: %s", reply.Status)
	}
}

// A form of another site, or of another session, changes nothing.
func TestForgedForms(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	ada, ops := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ops)
	for name, forge := range map[string]func(path string) consolestage.Reply{
		"without a token": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path, url.Values{"message": {"x"}, "at": {"1"}})
		},
		"of another session": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path, url.Values{"form_token": {ada.Form}, "message": {"x"}, "at": {"1"}})
		},
		"token in the address": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path+"?form_token="+ops.Form, url.Values{"message": {"x"}, "at": {"1"}})
		},
		"foreign Origin": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path, url.Values{"form_token": {ops.Form}, "message": {"x"}, "at": {"1"}}, "Origin",
				"https://evil.example")
		},
		"Origin null": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path, url.Values{"form_token": {ops.Form}, "message": {"x"}, "at": {"1"}}, "Origin", "null")
		},
		"cross-site": func(path string) consolestage.Reply {
			return ops.Do(http.MethodPost, path, url.Values{"form_token": {ops.Form}, "message": {"x"}, "at": {"1"}}, "Sec-Fetch-Site", "cross-site")
		},
	} {
		for _, path := range []string{"/conversations", "/conversations/plan/send", "/conversations/plan/cancel",
			"/conversations/plan/fork", "/waiting/plan/w",
			"/tools/local__weather", "/library/resource", "/library/prompts/local__greet", "/pins", "/reload",
			"/ensembles/local/disconnect", "/logout"} {
			if reply := forge(path); reply.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %s", path, name, reply.Status)
			}
		}
	}
	if reply := s.Stranger(t).Do(http.MethodPost, "/login", url.Values{"token": {consolestage.Ada}}, "Origin",
		"https://evil.example"); reply.StatusCode != http.StatusForbidden {
		t.Errorf("a login from another site: %s", reply.Status)
	}
	if info, err := s.Store.Info(t.Context(), "plan"); err != nil || info.Length != 2 {
		t.Errorf("the conversation has changed: %+v, %v", info, err)
	}
}

// Each response forbids frames, scripts of others, and requests to elsewhere.
func TestHeaders(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	ops := s.Login(t, consolestage.Ops)
	for _, path := range []string{"/", "/login", "/waiting", "/conversations", "/conversations/plan", "/conversations/plan/raw",
		"/conversations/none", "/tools",
		"/tools/local__weather", "/library", "/library/resource", "/library/prompts/local__greet", "/spend", "/pins", "/audit",
		"/audit.jsonl", "/static/console.css", "/static/console.js", "/none", "/link?code=x"} {
		reply := ops.Get(path)
		policy := reply.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %s", path, policy)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"} {
			if got := reply.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

// A person finds nothing of the conversations of others, not even that they exist. An
// operator finds all.
func TestConversationsOfOthers(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	stored(t, s.Store, "nobodys", "")
	ada, ben, ops := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ben), s.Login(t, consolestage.Ops)
	for _, rest := range []string{"", "/raw", "/live?after=1", "/images/1/0"} {
		for _, name := range []string{"plan", "nobodys"} {
			theirs, none := ben.Get("/conversations/"+name+rest), ben.Get("/conversations/nothing-like-it"+rest)
			if theirs.StatusCode != http.StatusNotFound || theirs.Text != none.Text {
				t.Errorf("%s%s: %s", name, rest, theirs.Status)
			}
		}
	}
	for _, name := range []string{"..%2F..%2Fetc", "%00", "%ff", strings.Repeat("x", 2000)} {
		if reply := ops.Get("/conversations/" + name); reply.StatusCode != http.StatusNotFound {
			t.Errorf("%.20q: %s", name, reply.Status)
		}
	}
	for _, path := range []string{"/conversations", "/conversations?q=secret", "/conversations?owner=owner-ada", "/spend", "/waiting", "/"} {
		if reply := ben.Get(path); strings.Contains(reply.Text, "plan<") || strings.Contains(reply.Text, "the secret") {
			t.Errorf("%s shows the conversation of another person", path)
		}
	}
	for _, p := range []*consolestage.Person{ada, ops} {
		if reply := p.Get("/conversations?q=secret"); !strings.Contains(reply.Text, "conversations/plan") || !strings.Contains(reply.Text,
			"<mark>secret</mark>") {
			t.Errorf("the owner or the operator does not find it:\n%s", reply.Text)
		}
	}
	if reply := ops.Get("/conversations/nobodys"); reply.StatusCode != http.StatusOK {
		t.Errorf("without an owner: %s", reply.Status)
	}
	if reply := s.Stranger(t).Get("/conversations/plan/live?after=1", "Accept", "text/event-stream"); reply.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stream without a login: %s", reply.Status)
	}
}

// Each role may do what it says, and no more.
func TestRoles(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "of-ada", "owner-ada")
	stored(t, s.Store, "of-ben", "owner-ben")
	people := map[string]*consolestage.Person{"of-ada": s.Login(t, consolestage.Ada), "of-ben": s.Login(t, consolestage.Ben),
		"aud": s.Login(t, consolestage.Aud), "ops": s.Login(t, consolestage.Ops)}
	allowed := func(reply consolestage.Reply) bool {
		return reply.StatusCode == http.StatusOK || reply.StatusCode == http.StatusSeeOther
	}
	for request, may := range map[string]string{
		"GET /": "of-ada of-ben aud ops", "GET /tools": "of-ada of-ben aud ops", "GET /conversations/OWN": "of-ada of-ben aud ops",
		"GET /conversations/of-ada": "of-ada aud ops", "GET /conversations/of-ben/raw": "of-ben aud ops",
		"GET /library": "of-ada of-ben aud ops", "GET /spend.csv": "of-ada of-ben aud ops", "GET /audit": "aud ops",
		"GET /audit.jsonl": "aud ops", "GET /pins": "aud ops",
		"POST /conversations/OWN/fork": "of-ada ops", "POST /tools/local__weather": "of-ada ops", "POST /conversations": "of-ada ops",
		"POST /library/resource": "of-ada ops", "POST /library/prompts/local__greet": "of-ada ops",
		"POST /reload": "ops", "POST /pins": "ops", "POST /ensembles/local/refresh": "ops",
	} {
		for name, person := range people {
			own := name
			if !strings.HasPrefix(name, "of-") {
				own = "of-ada"
			}
			method, path, _ := strings.Cut(strings.ReplaceAll(request, "OWN", own), " ")
			reply := consolestage.Reply{}
			if method == http.MethodGet {
				reply = person.Get(path)
			} else {
				reply = person.Post(path, "at", "1", "arguments", `{"city":"Oslo"}`)
			}
			if want := slices.Contains(strings.Fields(may), name); allowed(reply) != want {
				t.Errorf("%s by %s: %s", request, name, reply.Status)
			}
		}
	}
}

// A wait that names a person is answered by that person alone, and other people have no
// form for it. A person whose role is to read answers nothing.
func TestWhoMayAnswer(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	for who, answers := range map[string]string{"": "ada ops", "ada": "ada", "ops": "ops", "ben": "", "aud": "", "somebody": ""} {
		for _, name := range []string{"ada", "ben", "aud", "ops"} {
			id := "for-" + who + "-by-" + name
			head := func(id string) canister.Head { return canister.Head{ID: id, Time: time.Now()} }
			stored(t, s.Store, id, "owner-"+strings.NewReplacer("ops", "ada", "aud", "ada").Replace(name),
				canister.User{Head: head("u"), Content: canister.Texts("Do it.")},
				canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
				canister.Invocation{Head: head("i"), Message: "a", CallID: "1", Name: "local__weather", Arguments: `{}`},
				canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i", Deadline: time.Now().Add(time.Hour), Who: who,
					Conversation: id, Arguments: `{}`})
			person := s.Login(t, map[string]string{"ada": consolestage.Ada, "ben": consolestage.Ben, "aud": consolestage.Aud,
				"ops": consolestage.Ops}[name])
			may := slices.Contains(strings.Fields(answers), name)
			if has := strings.Contains(person.Get("/conversations/"+id).Text, `action="/console/waiting/`); has != may {
				t.Errorf("who %q: %s has a form: %t", who, name, has)
			}
			person.Post("/waiting/"+id+"/w", "verdict", "allow")
			answered := false
			for c, err := range s.Store.Read(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				answered = answered || c.Kind() == canister.KindAnswer
			}
			if answered != may {
				t.Errorf("who %q: the answer of %s is in the log: %t", who, name, answered)
			}
		}
	}
}

// asking returns the canisters of a call with a number that waits until somebody answers.
func asking(conversation, who, number, arguments string) []canister.Canister {
	head := func(id string) canister.Head { return canister.Head{ID: id + number, Time: time.Now()} }
	return []canister.Canister{
		canister.User{Head: head("u"), Content: canister.Texts("Do it.")},
		canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a" + number, CallID: "1", Name: "local__edit_file", Arguments: arguments},
		canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i" + number, Deadline: time.Now().Add(time.Hour), Who: who,
			Conversation: conversation, Arguments: arguments},
	}
}

// Nobody below an operator approves a call of their own, even if the rule names them, and also if
// the call came with another identity of theirs or nobody knows whose it is.
func TestOwnCalls(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada, ops := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ops)
	for id, c := range map[string]struct {
		owner, title string
		by           *consolestage.Person
		who          string
		may          bool
	}{
		"ask-of-zoe":               {"approval-zoe", "zoe calls local__edit_file", ada, "ada", true},
		"ask-own":                  {"approval-ada", "", ada, "ada", false},
		"ask-another-identity":     {"approval-ada-by-certificate", "ada calls local__edit_file", ada, "ada", false},
		"ask-aaaaaaaaaaaaaaaaaaaa": {"", "", ada, "ada", false},
		"ask-of-ops":               {"approval-ops", "ops calls local__edit_file", ops, "ops", true},
	} {
		stored(t, s.Store, id, c.owner, asking(id, c.who, "1", "{}")...)
		if err := s.Store.Describe(t.Context(), id, history.Change{Title: &c.title}); err != nil {
			t.Fatal(err)
		}
		const why = "A client does not approve its own calls."
		page := c.by.Get("/conversations/" + id).Text
		if strings.Contains(page, `action="/console/waiting/`) != c.may || strings.Contains(page, why) == c.may {
			t.Errorf("%s: may be answered: %t, says why not: %t", id, !c.may, strings.Contains(page, why))
		}
		c.by.Post("/waiting/"+id+"/w1", "verdict", "allow")
		c.by.Get("/waiting") // takes what the console says about the answer
		info, err := s.Store.Info(t.Context(), id)
		if err != nil || (info.Length > 4) != c.may {
			t.Errorf("%s: the log has %d canisters after the answer, %v", id, info.Length, err)
		}
	}
}

// The stream of a person ends with a change of the rights, because its entries have the forms of the
// earlier ones; those of others stay.
func TestStreamEndsWithItsRole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	live := func(token string) *http.Response {
		return s.Login(t, token).Open(http.MethodGet, "/conversations/plan/live?after=1", nil, "Accept", "text/event-stream")
	}
	of, other := live(consolestage.Ada), live(consolestage.Ops)
	defer of.Body.Close()
	defer other.Body.Close()
	s.SetRole("ada", console.Read)
	if text, err := io.ReadAll(of.Body); err != nil || !strings.Contains(string(text), "your rights have changed") {
		t.Errorf("%v after %q", err, text)
	}
	if err := s.Store.Append(t.Context(), "plan", 2, canister.User{Head: canister.Head{ID: "v"}, Content: canister.Texts("one more")}); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(other.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "one more") {
			return
		}
	}
	t.Error("the stream of another person ended too")
}

// A person may have as many open streams as a client of the API.
func TestManyStreams(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	ada, open := s.Login(t, consolestage.Ada), []*http.Response(nil)
	live := func(p *consolestage.Person) *http.Response {
		return p.Open(http.MethodGet, "/conversations/plan/live?after=1", nil, "Accept", "text/event-stream")
	}
	for range openstreams.DefaultPerOwner {
		open = append(open, live(ada))
		if status := open[len(open)-1].Status; status != "200 OK" {
			t.Errorf("stream %d: %s", len(open), status)
		}
	}
	for p, want := range map[*consolestage.Person]int{ada: http.StatusTooManyRequests, s.Login(t, consolestage.Ada): http.StatusTooManyRequests,
		s.Login(t, consolestage.Ops): http.StatusOK} {
		reply := live(p)
		if reply.Body.Close(); reply.StatusCode != want {
			t.Errorf("one more: %s, want %d", reply.Status, want)
		}
	}
	for _, one := range open {
		one.Body.Close()
	}
	for ends := time.Now().Add(time.Minute); time.Now().Before(ends); { // the server notices it soon
		if reply := live(ada); reply.Body.Close() == nil && reply.StatusCode == http.StatusOK {
			return
		}
	}
	t.Error("closed streams count")
}

// People whose tokens have no names do not share the bounds of one person.
func TestPeopleWithoutNames(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-")
	s.SetRole("", console.Read)
	s.MCP.SetAccess(&server.Options{Tokens: []server.BearerToken{{Token: consolestage.Ada}, {Token: consolestage.Ben}}})
	ada, ben := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ben)
	live := func(p *consolestage.Person) *http.Response {
		response := p.Open(http.MethodGet, "/conversations/plan/live?after=1", nil, "Accept", "text/event-stream")
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	for range openstreams.DefaultPerOwner {
		live(ada)
	}
	for p, want := range map[*consolestage.Person]int{ada: http.StatusTooManyRequests, ben: http.StatusOK} {
		if reply := live(p); reply.StatusCode != want {
			t.Errorf("one more: %s, want %d", reply.Status, want)
		}
	}
}

// The stream of an approval ends with the right to see it: with an answer, before what comes after
// it, and with the time to answer.
func TestStreamOfApproval(t *testing.T) {
	var later atomic.Int64 // hours
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load()) * time.Hour) }
	s := consolestage.Start(t, consolestage.Options{Now: now})
	ada := s.Login(t, consolestage.Ada)
	open := func(id string) *http.Response {
		stored(t, s.Store, id, "approval-eve", asking(id, "ada", "1", "{}")...)
		response := ada.Open(http.MethodGet, "/conversations/"+id+"/live?after=1", nil, "Accept", "text/event-stream")
		if response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
		return response
	}
	ended := func(id string, response *http.Response) string {
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("the stream of %s did not end: %v", id, err)
		}
		if reply := ada.Get("/conversations/" + id); reply.StatusCode != http.StatusNotFound {
			t.Errorf("the page of %s: %s", id, reply.Status)
		}
		return string(text)
	}
	answered, expired := open("ask-answered"), open("ask-expired")
	next := append([]canister.Canister{canister.Answer{Head: canister.Head{ID: "n1"}, Wait: "w1", Verdict: canister.VerdictDeny, By: "ada"},
		canister.Result{Head: canister.Head{ID: "r1"}, Invocation: "i1", Code: "DENIED", Content: canister.Texts("no")}},
		asking("ask-answered", "ops", "2", `{"path":"only-for-ops"}`)...)
	if err := s.Store.Append(t.Context(), "ask-answered", 4, next...); err != nil {
		t.Fatal(err)
	}
	if text := ended("ask-answered", answered); strings.Contains(text, "only-for-ops") {
		t.Errorf("the stream shows what another person may see:\n%s", text)
	}
	later.Store(2)
	s.MCP.SetAccess(&server.Options{Tokens: consolestage.Tokens()}) // checks all streams
	ended("ask-expired", expired)
}

// A form does nothing if the person loses a right, the token or the session while it arrives.
func TestRightsEndWhileAFormArrives(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	caller := s.Console.Caller
	begin := func(change func(ada *consolestage.Person)) int {
		t.Helper()
		s.SetRole("ada", console.Answer)
		ada := s.Login(t, consolestage.Ada)
		checked := make(chan struct{})
		var once sync.Once
		s.Console.Caller = func(ctx context.Context) (console.Caller, error) {
			defer once.Do(func() { close(checked) })
			return caller(ctx)
		}
		body, rest := io.Pipe()
		go func() {
			form := url.Values{"form_token": {ada.Form}, "message": {"Do it."}}.Encode()
			_, _ = io.WriteString(rest, form[:len(form)-1])
			<-checked
			change(ada)
			_, _ = io.WriteString(rest, form[len(form)-1:])
			_ = rest.Close()
		}()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/conversations", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Cookie", ada.Cookie)
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		s.Console.Caller = caller
		_ = response.Body.Close()
		return response.StatusCode
	}
	for name, c := range map[string]struct {
		change func(ada *consolestage.Person)
		status int
	}{
		"role":  {func(*consolestage.Person) { s.SetRole("ada", console.Read) }, http.StatusForbidden},
		"token": {func(*consolestage.Person) { s.MCP.SetAccess(&server.Options{Token: "another-token"}) }, http.StatusUnauthorized},
		"login": {func(ada *consolestage.Person) { ada.Post("/logout") }, http.StatusForbidden},
	} {
		if status := begin(c.change); status != c.status {
			t.Errorf("%s: status %d", name, status)
		}
		for info, err := range s.Store.List(t.Context(), history.Filter{}) {
			t.Errorf("%s: there is a conversation: %v, %v", name, info, err)
		}
	}
	if status := begin(func(*consolestage.Person) {}); status != http.StatusSeeOther {
		t.Errorf("with all rights: status %d", status)
	}
}
