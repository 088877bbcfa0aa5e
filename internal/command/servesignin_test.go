// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/authserver"
)

// issued is a gateway whose clients have tokens of an issuer, and each its own login at notes.
type issued struct {
	t        *testing.T
	gateway  *service
	notes    *authserver.Server // where people log in at notes
	issuer   *authserver.Server
	key      *authserver.Key
	audience string
}

func newIssued(t *testing.T) *issued {
	t.Helper()
	notes, path := ownLogins(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "[serve]")
	logIn(t, path)
	w := &issued{t: t, notes: notes, key: authserver.NewKey(t, "k1")}
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.issuer.ServeHTTP(rw, r) }))
	t.Cleanup(web.Close)
	w.issuer = authserver.New(web.URL, authserver.Behaviour{NoRegistration: true})
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port, which the issuer has to know
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + listener.Addr().String()
	listener.Close()
	w.audience = origin + "/mcp"
	w.issuer.AddClient("gateway", origin+"/login/issuer")
	w.gateway = serve(t, true, "--config", file(t, table, `[serve]
http = "`+strings.TrimPrefix(origin, "http://")+`"
watch = false
[serve.oidc]
issuer = "`+web.URL+`"
audience = "`+w.audience+`"
client_id = "gateway"
`))
	return w
}

// token returns the token with which the client of a user comes.
func (w *issued) token(user string) string {
	now := time.Now().Unix()
	return w.key.Sign(map[string]any{"iss": w.issuer.Issuer, "aud": w.audience, "sub": user, "iat": now, "exp": now + 600}, nil)
}

// link returns the link that a call of a user gets.
func (w *issued) link(user string) string {
	w.t.Helper()
	w.issuer.SignWith(w.key, user)
	said := called(w.t, w.gateway.connect(w.token(user)), "notes__write", "{}")
	_, rest, _ := strings.Cut(said, "open ")
	link, _, found := strings.Cut(rest, " in a browser")
	if !found {
		w.t.Fatal(said)
	}
	return link
}

// answer lets a browser begin a login at the issuer, where user is logged in, and returns the
// address of the answer.
func (w *issued) answer(p *visitor, link, user string) string {
	w.t.Helper()
	w.issuer.SignWith(w.key, user)
	follow := p.browser.CheckRedirect
	p.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { p.browser.CheckRedirect = follow }()
	response, err := p.browser.PostForm(link, url.Values{"issuer": {"yes"}})
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	if !strings.HasPrefix(response.Header.Get("Location"), w.issuer.Issuer+"/authorize?") {
		w.t.Fatalf("%s %s", response.Status, response.Header.Get("Location"))
	}
	return authserver.Redirect(w.t, http.DefaultTransport, response.Header.Get("Location")).String()
}

// TestServeSignIn: a person whose client has a token of an issuer shows at the link, with a login
// at the same issuer, who they are, and logs in at the server. All others are refused: another
// person who opens the link; a browser that gets the answer of another one's login; an answer
// that was used, or has another state or issuer.
func TestServeSignIn(t *testing.T) {
	t.Parallel()
	w := newIssued(t)
	link := w.link("ada")
	ada, eve := newVisitor(t), newVisitor(t)
	if status, page := ada.read(ada.browser.Get(link)); status != http.StatusOK || !strings.Contains(page, "Log in at the gateway") {
		t.Errorf("the page: %d %s", status, page)
	}
	refused := func(what string, status int, page, want string, statuses ...int) {
		t.Helper()
		for _, s := range statuses {
			if status == s && strings.Contains(page, want) {
				return
			}
		}
		t.Errorf("%s: %d %s", what, status, page)
	}
	status, page := eve.read(eve.browser.Get(w.answer(eve, link, "eve")))
	refused("another person", status, page, "not the one whose call", http.StatusForbidden)
	status, page = eve.open(link, "")
	refused("another person, after that", status, page, "not valid", http.StatusForbidden)

	answer := w.answer(ada, link, "ada") // of the right person, opened by another one
	status, page = eve.read(eve.browser.Get(answer))
	refused("the answer in another browser", status, page, "another browser", http.StatusForbidden)
	status, page = ada.read(ada.browser.Get(strings.Replace(answer, "state=", "state=x", 1)))
	refused("another state", status, page, "does not belong", http.StatusBadRequest)
	parsed, err := url.Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("iss", "https://evil.example")
	parsed.RawQuery = query.Encode()
	status, page = ada.read(ada.browser.Get(parsed.String()))
	refused("the answer of another issuer", status, page, "evil.example", http.StatusBadGateway)
	status, page = ada.read(ada.browser.Get(answer))
	refused("an answer that was used", status, page, "does not belong", http.StatusBadRequest)
	if n := w.notes.Count("/authorize"); n != 1 { // of the program's user
		t.Errorf("%d people were sent to notes", n)
	}

	if status, page = ada.read(ada.browser.Get(w.answer(ada, link, "ada"))); status != http.StatusOK || !strings.Contains(page, "Log in at notes") ||
		strings.Contains(page, "Log in at the gateway") {
		t.Errorf("after the login: %d %s", status, page)
	}
	if status, page = ada.read(ada.browser.PostForm(link, url.Values{})); status != http.StatusOK || !strings.Contains(page, "The call goes on") {
		t.Errorf("the login at notes: %d %s", status, page)
	}
	if said := called(t, w.gateway.connect(w.token("ada")), "notes__write", "{}"); !strings.HasPrefix(said, "login ") {
		t.Errorf("after the login: %s", said)
	}
	if said := called(t, w.gateway.connect(w.token("eve")), "notes__write", "{}"); !strings.HasPrefix(said, "UNAUTHORIZED") {
		t.Errorf("another person: %s", said)
	}
	for _, form := range w.issuer.Forms() {
		if form.Get("code_verifier") == "" || form.Get("resource") != w.audience {
			t.Errorf("a code was redeemed without PKCE, or for another resource: %v", form)
		}
	}
	w.gateway.signal(os.Interrupt)
	w.gateway.ends(exit.Done)
}
