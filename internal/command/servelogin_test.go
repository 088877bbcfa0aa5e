// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	adasToken = "ada-0123456789abcdef"
	bensToken = "ben-0123456789abcdef"
)

// ownLogins returns a configuration in which each client has its own login at the server
// notes, which answers a call with the number of the login.
func ownLogins(t *testing.T) (s *authserver.Server, path string) {
	t.Helper()
	scripted := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			mcptest.Reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":"login %d"}]}`, s.LoginOf(token)))
		}
		return m.Method == "tools/call"
	})
	s, resource := authserver.Start(t, authserver.Behaviour{}, scripted)
	return s, file(t, "[mcp.notes]\nurl = \""+resource+"\"\n[mcp.notes.oauth]\nper = \"identity\"\n", guests)
}

// visitor is someone with a browser.
type visitor struct {
	t       *testing.T
	browser *http.Client
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, &http.Client{Jar: jar, Transport: &formSender{policies: map[string]string{}}}}
}

// formSender sends forms with the headers of a browser. The page of a form has the address that
// the form is sent to.
type formSender struct {
	mu       sync.Mutex
	policies map[string]string // the header Referrer-Policy, by page
}

func (b *formSender) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	policy := b.policies[r.URL.String()]
	b.mu.Unlock()
	if r = r.Clone(r.Context()); r.Method == http.MethodPost {
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		if policy == "no-referrer" { // Fetch Standard, "append a request Origin header"
			r.Header.Set("Origin", "null")
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.policies[r.URL.String()] = response.Header.Get("Referrer-Policy")
	}
	return response, err
}

// read returns the status and the text of a response.
func (p *visitor) read(response *http.Response, err error) (status int, text string) {
	p.t.Helper()
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Error(err)
	}
	return response.StatusCode, string(body)
}

// open opens a link and sends its form with a token.
func (p *visitor) open(link, token string) (status int, text string) {
	p.t.Helper()
	if status, text = p.read(p.browser.Get(link)); status != http.StatusOK {
		return status, text
	}
	return p.read(p.browser.PostForm(link, url.Values{"token": {token}}))
}

// visiting returns a session of a client whose user opens links with open.
func (s *service) visiting(token string, open func(link string) (action string)) *mcp.ClientSession {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: open(q.Params.URL)}, nil
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(token)}}
	session, err := client.Connect(s.t.Context(), transport, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// TestServeOwnLogins: each client gets the link of a page, its person logs in there, the call
// goes on, and each call is made with the login of its client, also after a restart.
func TestServeOwnLogins(t *testing.T) {
	t.Parallel()
	server, path := ownLogins(t)
	logIn(t, path)
	s := serve(t, true, "--config", path)
	var mu sync.Mutex
	links := map[string]int{}
	accepting := func(token string) func(string) string {
		p := newVisitor(t)
		return func(link string) string {
			mu.Lock()
			links[token]++
			mu.Unlock()
			go func() {
				if status, text := p.open(link, token); status != http.StatusOK || !strings.Contains(text, "The call goes on") {
					t.Errorf("the page: %d %s", status, text)
				}
			}()
			return "accept"
		}
	}
	ada, ben := s.visiting(adasToken, accepting(adasToken)), s.visiting(bensToken, accepting(bensToken))
	adas, bens := called(t, ada, "notes__write", "{}"), called(t, ben, "notes__write", "{}")
	if !strings.HasPrefix(adas, "login ") || !strings.HasPrefix(bens, "login ") || adas == bens || adas == "login 2" || bens == "login 2" {
		t.Fatalf("ada: %s, ben: %s", adas, bens)
	}
	for range 3 {
		if a, b := called(t, ada, "notes__read", "{}"), called(t, ben, "notes__write", "{}"); a != adas || b != bens {
			t.Errorf("ada: %s, ben: %s", a, b)
		}
	}
	if links[adasToken] != 1 || links[bensToken] != 1 {
		t.Errorf("links: %v", links)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	s = serve(t, true, "--config", path)
	if a := called(t, s.connect(adasToken), "notes__write", "{}"); a != adas {
		t.Errorf("after a restart: %s", a)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	if local := consort(t, "call", "notes", "write", "{}", "--config", path).expect(t, exit.Done).stdout; strings.Contains(local, adas) ||
		strings.Contains(local, bens) {
		t.Errorf("the user of the program: %s", local)
	}
	logOutClients(t, server, path)
}

// logOutClients removes the logins of the program's user and of two clients, one after the other.
func logOutClients(t *testing.T, server *authserver.Server, path string) {
	t.Helper()
	clients := func() (ids []string) {
		t.Helper()
		var list reports.LoginList
		if err := json.Unmarshal([]byte(consort(t, "logins", "--config", path, "--json").expect(t, exit.Done).stdout), &list); err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Logins {
			if one.Server != "notes" {
				t.Errorf("listed is %+v", one)
			}
			if one.Client != "" {
				ids = append(ids, one.Client)
			}
		}
		return ids
	}
	ids := clients()
	if len(ids) != 2 {
		t.Fatalf("the clients with a login are %v", ids)
	}
	contains(t, "logins", consort(t, "logins", "--config", path).expect(t, exit.Done).stdout, "client "+ids[0][:8]+" of the gateway, since")
	contains(t, "a wrong client", consort(t, "logout", "notes", "--client", "x", "--config", path).expect(t, exit.Usage).stderr, "consort logins")
	revoked := server.Count("/revoke")
	consort(t, "logout", "notes", "--client", ids[0][:8], "--config", path).expect(t, exit.Done)
	if left := clients(); len(left) != 1 || left[0] != ids[1] || server.Count("/revoke") != revoked+1 {
		t.Errorf("after the logout of %s: %v", ids[0], left)
	}
	consort(t, "logout", "notes", "--config", path).expect(t, exit.Done)
	contains(t, "logout without a login of one's own", consort(t, "logout", "notes", "--config", path).expect(t, exit.Usage).stderr, "--client ID")
	if left := clients(); len(left) != 1 {
		t.Errorf("after the logout of the program's user: %v", left)
	}
}

// TestServeOwnLoginsRefused: a client that cannot be asked gets the link as a text, a declined
// one nothing; and a link is of no use to others.
func TestServeOwnLoginsRefused(t *testing.T) {
	t.Parallel()
	s, path := ownLogins(t)
	logIn(t, path)
	g := serve(t, true, "--config", path)
	link := func() string {
		t.Helper()
		said := called(t, g.connect(adasToken), "notes__write", "{}")
		_, rest, _ := strings.Cut(said, "open ")
		link, _, found := strings.Cut(rest, " in a browser")
		if !strings.HasPrefix(said, "UNAUTHORIZED: ") || !found {
			t.Fatal(said)
		}
		return link
	}
	ben, ada, eve := newVisitor(t), newVisitor(t), newVisitor(t)
	first := link()
	if again := link(); again != first {
		t.Errorf("another link: %s, %s", first, again)
	}
	for token, want := range map[string]string{bensToken: "belongs to another client", "wrong-0123456789abcdef": "not valid", "": "not valid"} {
		if status, text := ben.open(first, token); status != http.StatusForbidden || !strings.Contains(text, want) {
			t.Errorf("with %q: %d %s", token, status, text)
		}
	}
	if status, text := ben.read(ben.browser.Get(first + "x")); status != http.StatusNotFound {
		t.Errorf("an unknown link: %d %s", status, text)
	}
	ada.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := ada.browser.PostForm(first, url.Values{"token": {adasToken}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	callback := authserver.Redirect(t, http.DefaultTransport, response.Header.Get("Location")).String()
	if status, text := eve.read(eve.browser.Get(callback)); status != http.StatusForbidden || !strings.Contains(text, "another browser") {
		t.Errorf("the redirect in another browser: %d %s", status, text)
	}
	if status, _ := ben.read(ben.browser.Get(strings.Replace(callback, "state=", "state=x", 1))); status != http.StatusBadRequest {
		t.Errorf("a wrong state: %d", status)
	}
	if status, text := ada.read(ada.browser.Get(callback)); status != http.StatusOK {
		t.Errorf("the redirect: %d %s", status, text)
	}
	if status, text := ada.read(ada.browser.Get(callback)); status != http.StatusBadRequest {
		t.Errorf("the redirect once more: %d %s", status, text)
	}
	if said := called(t, g.connect(adasToken), "notes__write", "{}"); !strings.HasPrefix(said, "login ") {
		t.Errorf("after the login: %s", said)
	}
	declined := g.visiting(bensToken, func(string) string { return "decline" })
	if said := called(t, declined, "notes__write", "{}"); !strings.Contains(said, "the user declined") {
		t.Errorf("a declined login: %s", said)
	}
	if n := s.Count("/token authorization_code"); n != 2 { // of the program's user and of ada
		t.Errorf("%d logins", n)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestServeTokenExchange: each call has a token that was exchanged for that of its client.
func TestServeTokenExchange(t *testing.T) {
	t.Parallel()
	var s *authserver.Server
	scripted := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			mcptest.Reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":"for %s"}]}`, s.SubjectOf(token)))
		}
		return m.Method == "tools/call"
	})
	s, resource := authserver.Start(t, authserver.Behaviour{}, scripted)
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	const audience = "https://tools.example/mcp"
	g := serve(t, true, "--config", file(t, `
[mcp.notes]
url = "`+resource+`"
[mcp.notes.oauth]
grant = "token_exchange"
issuer = "`+s.Issuer+`"
client_id = "machine"
client_secret = "machine-secret"
[serve]
http = "127.0.0.1:0"
watch = false
[serve.oidc]
issuer = "`+web.URL+`"
audience = "`+audience+`"
[[serve.clients]]
name = "static"
token = "`+adasToken+`"
`))
	for _, client := range []struct{ sub, known string }{
		{"ada", "ada"}, {"ben", "ben"}, {"ada", "ada who may only read"}, {"eve", ""}, // eve is unknown to the issuer of the tools
	} {
		user, want := client.sub, "UNAUTHORIZED: "
		token := key.Sign(issuer.Claims(audience, map[string]any{"sub": user, "jti": client.known}), nil)
		if client.known != "" {
			s.AddSubject(token, client.known)
			want = "for " + client.known
		}
		session := g.connect(token)
		for range 2 {
			if got := called(t, session, "notes__write", "{}"); !strings.HasPrefix(got, want) || client.known != "" && got != want || strings.Contains(got, token) {
				t.Errorf("%s: %s", user, got)
			}
		}
	}
	if got := called(t, g.connect(adasToken), "notes__write", "{}"); !strings.HasPrefix(got, "UNAUTHORIZED: ") {
		t.Errorf("a client with a static token: %s", got)
	}
	if n := s.Count("/token urn:ietf:params:oauth:grant-type:token-exchange"); n < 2 {
		t.Errorf("%d exchanges", n)
	}
	for _, form := range s.Forms() {
		if strings.Contains(form.Encode(), adasToken) {
			t.Errorf("the static token was sent: %v", form)
		}
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}
