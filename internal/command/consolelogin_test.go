// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
)

var formFields = regexp.MustCompile(`name="form_token" value="([A-Z0-9]+)"`)

// intoConsole logs a visitor into the console of a service, and returns its address and the
// token of its forms.
func (p *visitor) intoConsole(s *service, token string) (console, form string) {
	p.t.Helper()
	console = strings.TrimSuffix(s.url, "/mcp") + "/console"
	status, text := p.read(p.browser.PostForm(console+"/login", url.Values{"token": {token}}))
	found := formFields.FindStringSubmatch(text)
	if status != http.StatusOK || found == nil {
		p.t.Fatalf("the console: %d %s", status, text)
	}
	return console, found[1]
}

// opensLogin begins the login at the server notes from the console, and returns the address of
// its page.
func (p *visitor) opensLogin(console, form string) (page string) {
	p.t.Helper()
	response, err := p.browser.PostForm(console+"/ensembles/notes/login", url.Values{"form_token": {form}})
	if status, text := p.read(response, err); status != http.StatusOK {
		p.t.Fatalf("the page of the login: %d %s", status, text)
	}
	return response.Request.URL.String()
}

// TestLoginFromTheConsole: an operator logs the gateway in at a server that needs it, from the
// console, and the server is connected then; another client cannot.
func TestLoginFromTheConsole(t *testing.T) {
	t.Parallel()
	_, resource := authserver.Start(t, authserver.Behaviour{}, mcptest.NewScripted(t, nil))
	g := serve(t, true, "--config", file(t, "[mcp.notes]\nurl = \""+resource+"\"\n[mcp.notes.oauth]\n", `
[serve]
http = "127.0.0.1:0"
watch = false
[[serve.clients]]
name = "ada"
token = "`+adasToken+`"
console = "operate"
[[serve.clients]]
name = "ben"
token = "`+bensToken+`"
console = "answer"
`))
	ada, ben := newVisitor(t), newVisitor(t)
	console, form := ben.intoConsole(g, bensToken)
	status, text := ben.read(ben.browser.PostForm(console+"/ensembles/notes/login", url.Values{"form_token": {form}}))
	if status != http.StatusForbidden {
		t.Errorf("a client logs the gateway in: %d %s", status, text)
	}
	_, form = ada.intoConsole(g, adasToken)
	waitFor(t, "the need of a login", func() bool {
		_, text := ada.read(ada.browser.Get(console + "/"))
		return strings.Contains(text, "needs login") && strings.Contains(text, "Log in at notes")
	})
	response, err := ada.browser.PostForm(console+"/ensembles/notes/login", url.Values{"form_token": {form}})
	page := response.Request.URL
	if status, text = ada.read(response, err); status != http.StatusOK || !strings.Contains(text, "for all of its clients") || strings.Contains(text, "token") {
		t.Fatalf("the page of the login: %d %s", status, text)
	}
	if status, text := ben.read(ben.browser.PostForm(page.String(), url.Values{"token": {bensToken}})); status != http.StatusForbidden {
		t.Errorf("another client at the page: %d %s", status, text)
	}
	status, text = ada.read(ada.browser.PostForm(page.String(), nil))
	if status != http.StatusOK || !strings.Contains(text, `href="/console/"`) {
		t.Errorf("after the login: %d %s", status, text)
	}
	if _, text = ada.read(ada.browser.Get(console + "/")); !strings.Contains(text, `<span class="state good">ready</span>`) {
		t.Errorf("the server is not connected: %s", text)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestOwnLoginFromTheConsole: a client of a server with a login for each client logs in from
// the console, without a call, and its calls have this login.
func TestOwnLoginFromTheConsole(t *testing.T) {
	t.Parallel()
	_, path := ownLogins(t)
	logIn(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = file(t, strings.Replace(string(text), "[serve]", "[serve]\nconsole = \"answer\"", 1))
	g := serve(t, true, "--config", path)
	ada := newVisitor(t)
	console, form := ada.intoConsole(g, adasToken)
	response, err := ada.browser.PostForm(console+"/ensembles/notes/login", url.Values{"form_token": {form}})
	page := response.Request.URL
	if status, text := ada.read(response, err); status != http.StatusOK || !strings.Contains(text, "Nobody else gets your login") {
		t.Fatalf("the page of the login: %d %s", status, text)
	}
	if status, text := ada.read(ada.browser.PostForm(page.String(), nil)); status != http.StatusOK || !strings.Contains(text, `href="/console/"`) {
		t.Errorf("after the login: %d %s", status, text)
	}
	if said := called(t, g.connect(adasToken), "notes__write", "{}"); !strings.HasPrefix(said, "login ") {
		t.Errorf("a call: %s", said)
	}
	if said := called(t, g.connect(bensToken), "notes__write", "{}"); !strings.HasPrefix(said, "UNAUTHORIZED: ") {
		t.Errorf("a call of another client: %s", said)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// sharedLogin is a configuration of the server notes, with more in its table oauth, where the
// gateway logs in, and of the client ada with a role at the console.
func sharedLogin(resource, more, role string) string {
	return "[mcp.notes]\nurl = \"" + resource + "\"\n[mcp.notes.oauth]\n" + more + `
[serve]
http = "127.0.0.1:0"
watch = false
[[serve.clients]]
name = "ada"
token = "` + adasToken + `"
console = "` + role + `"
`
}

// rewrite replaces the text of a file.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLoginOfAFormerOperator: an operator who may not use the console any more cannot go on with
// a login of the gateway.
func TestLoginOfAFormerOperator(t *testing.T) {
	t.Parallel()
	asked, resource := authserver.Start(t, authserver.Behaviour{}, mcptest.NewScripted(t, nil))
	path := file(t, sharedLogin(resource, "", "operate"))
	g := serve(t, true, "--config", path)
	ada := newVisitor(t)
	console, form := ada.intoConsole(g, adasToken)
	page, callback := ada.opensLogin(console, form), ""
	ada.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/login/callback" {
			callback = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	ada.read(ada.browser.PostForm(page, nil))
	rewrite(t, path, sharedLogin(resource, "", "off"))
	g.signal(syscall.SIGHUP)
	waitFor(t, "the demotion", func() bool {
		status, _ := ada.read(ada.browser.PostForm(console+"/ensembles/notes/login", url.Values{"form_token": {form}}))
		return status == http.StatusForbidden
	})
	if status, text := ada.read(ada.browser.Get(callback)); status != http.StatusForbidden || asked.Count("/token authorization_code") != 0 {
		t.Errorf("a former operator after the login: %d %s", status, text)
	}
	status, text := ada.read(ada.browser.PostForm(page, nil))
	if status != http.StatusForbidden || !strings.Contains(text, "your rights have changed") {
		t.Errorf("a former operator at the page of the login: %d %s", status, text)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestLoginAfterRejectedReload: a configuration that is rejected as a whole does not lead logins
// to its servers.
func TestLoginAfterRejectedReload(t *testing.T) {
	t.Parallel()
	_, resource := authserver.Start(t, authserver.Behaviour{}, mcptest.NewScripted(t, nil))
	other, rejected := authserver.Start(t, authserver.Behaviour{}, mcptest.NewScripted(t, nil))
	path := file(t, sharedLogin(resource, "", "operate"))
	g := serve(t, true, "--config", path)
	ada := newVisitor(t)
	console, form := ada.intoConsole(g, adasToken)
	rewrite(t, path, sharedLogin(rejected, "[mcp.bad]\nurl = \""+resource+"\"\npin = \"/\"\n", "operate"))
	status, text := ada.read(ada.browser.PostForm(console+"/reload", url.Values{"form_token": {form}}))
	if !strings.Contains(text, "notice failed") {
		t.Fatalf("the reload: %d %s", status, text)
	}
	status, text = ada.read(ada.browser.PostForm(ada.opensLogin(console, form), nil))
	if status != http.StatusOK || other.Count("/authorize") != 0 {
		t.Errorf("the login at the server of a rejected configuration: %d %s", status, text)
	}
	if _, text = ada.read(ada.browser.Get(console + "/")); !strings.Contains(text, `<span class="state good">ready</span>`) {
		t.Errorf("the server is not connected: %s", text)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestLoginAfterReload: the console offers a login at a server that a reload has kept, and not
// where it has removed the table oauth.
func TestLoginAfterReload(t *testing.T) {
	t.Parallel()
	_, resource := authserver.Start(t, authserver.Behaviour{}, mcptest.NewScripted(t, nil))
	before := sharedLogin(resource, "per = \"identity\"\n", "operate")
	path := file(t, before)
	g := serve(t, true, "--config", path)
	ada := newVisitor(t)
	console, form := ada.intoConsole(g, adasToken)
	for _, change := range []struct {
		config string
		offers bool
	}{
		{strings.Replace(before, "watch = false", "watch = false\nparallel = 7", 1), true},
		{strings.Replace(sharedLogin(resource, "", "operate"), "[mcp.notes.oauth]\n", "", 1), false},
	} {
		rewrite(t, path, change.config)
		_, text := ada.read(ada.browser.PostForm(console+"/reload", url.Values{"form_token": {form}}))
		if strings.Contains(text, "notice failed") {
			t.Errorf("the reload: %s", text)
		}
		_, text = ada.read(ada.browser.Get(console + "/"))
		if offers := strings.Contains(text, "Log in for your calls"); offers != change.offers {
			t.Errorf("after a reload with %s\nthe console offers a login: %v", change.config, offers)
		}
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestOwnLoginWhileCallWaits: a login that a client begins at the console leads back to it, also
// if a call waits for a login at the same server. The call goes on.
func TestOwnLoginWhileCallWaits(t *testing.T) {
	t.Parallel()
	_, path := ownLogins(t)
	logIn(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, true, "--config", file(t, strings.Replace(string(text), "[serve]", "[serve]\nconsole = \"answer\"", 1)))
	visitor := newVisitor(t)
	console, form := visitor.intoConsole(g, adasToken)
	page := visitor.opensLogin(console, form)
	ada := g.visiting(adasToken, func(link string) string {
		if page == link {
			t.Errorf("the console leads to the page of a call")
		}
		status, text := visitor.read(visitor.browser.PostForm(page, nil))
		if status != http.StatusOK || !strings.Contains(text, `href="/console/"`) || strings.Contains(text, "The call goes on") {
			t.Errorf("after the login: %d %s", status, text)
		}
		return "accept"
	})
	if said := called(t, ada, "notes__write", "{}"); !strings.HasPrefix(said, "login ") {
		t.Errorf("the call: %s", said)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestOwnLoginRevivesNothing: a client that may not connect servers logs in for its own calls
// at a server that an operator has parked, and the server stays parked.
func TestOwnLoginRevivesNothing(t *testing.T) {
	t.Parallel()
	_, path := ownLogins(t)
	logIn(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Replace(string(text), "[serve]", "[serve]\nconsole = \"answer\"", 1)
	settings = strings.Replace(settings, `name = "ben"`, "name = \"ben\"\nconsole = \"operate\"", 1)
	g := serve(t, true, "--config", file(t, settings))
	ada, ben := newVisitor(t), newVisitor(t)
	console, form := ben.intoConsole(g, bensToken)
	status, page := ben.read(ben.browser.PostForm(console+"/ensembles/notes/park", url.Values{"form_token": {form}}))
	if status != http.StatusOK || !strings.Contains(page, ">parked<") {
		t.Fatalf("the operator parks: %d %s", status, page)
	}
	_, form = ada.intoConsole(g, adasToken)
	if status, text := ada.read(ada.browser.PostForm(ada.opensLogin(console, form), nil)); status != http.StatusOK {
		t.Errorf("after the login: %d %s", status, text)
	}
	if _, text := ben.read(ben.browser.Get(console + "/")); !strings.Contains(text, ">parked<") {
		t.Error("the login of a client has revived the server that an operator parked")
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// TestNoOwnApproval: a client that a rule names does not approve its own call with its one token.
func TestNoOwnApproval(t *testing.T) {
	t.Parallel()
	g := serve(t, true, "--config", file(t, fmt.Sprintf("[mcp.s2]\nurl = %q\n", echoing(t, 2))+historyTable+`
[serve]
http = "127.0.0.1:0"
watch = false
console = "answer"
[[serve.clients]]
name = "ada"
token = "`+adasToken+`"
[[serve.rules]]
action = "ask"
ensembles = ["s2"]
read_only = false
who = "ada"
`))
	said := called(t, g.connect(adasToken), "s2__write", "{}")
	approval := regexp.MustCompile("ask-[a-z2-7]{20}").FindString(said)
	if !strings.HasPrefix(said, "CONFLICT") || approval == "" {
		t.Fatal(said)
	}
	ada := newVisitor(t)
	console, _ := ada.intoConsole(g, adasToken)
	_, text := ada.read(ada.browser.Get(console + "/waiting"))
	if !strings.Contains(text, approval) || !strings.Contains(text, "A client does not approve its own calls.") || strings.Contains(text, `name="verdict"`) {
		t.Errorf("the page of what waits:\n%s", text)
	}
	if said := called(t, g.connect(adasToken), "s2__write", "{}"); !strings.HasPrefix(said, "CONFLICT") {
		t.Errorf("the call was made: %s", said)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}

// The console is no way around the right to use the tool converse: messages and answers count as calls of it.
func TestConsoleNeedsTheToolConverse(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), historyTable, `
[serve]
http = "127.0.0.1:0"
converse = true
watch = false
[[serve.clients]]
name = "ada"
token = "`+adasToken+`"
trusted = {user = "ada"}
allow = ["weather"]
console = "answer"
`)
	s := serve(t, true, "--config", path)
	ada := newVisitor(t)
	console, form := ada.intoConsole(s, adasToken)
	_, text := ada.read(ada.browser.PostForm(console+"/conversations", url.Values{"form_token": {form}, "message": {"Hello?"}}))
	if !strings.Contains(text, "may not use converse") {
		t.Errorf("the message is not refused: %s", text)
	}
	if _, list := ada.read(ada.browser.Get(console + "/conversations")); strings.Contains(list, "Hello?") {
		t.Errorf("the message is stored: %s", list)
	}
}

// An operator without the trusted values that identify users answers and resumes conversations of others.
func TestOperatorWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("satchel__pack", `{"items":["hat"]}`)), says("Packed.")), satchel(0), historyTable, `
[approval]
default = "defer"
[conversation]
identity = ["user"]
[serve]
http = "127.0.0.1:0"
converse = true
watch = false
[[serve.clients]]
name = "ada"
token = "`+adasToken+`"
trusted = {user = "ada"}
[[serve.clients]]
name = "dana"
token = "danas-0123456789abcdef"
console = "operate"
`)
	s := serve(t, true, "--config", path)
	h, failure := s.says(adasToken, "Pack a hat.", "")
	if h.Reason != "waiting" {
		t.Fatalf("%+v, %s", h, failure)
	}
	dana := newVisitor(t)
	console, form := dana.intoConsole(s, "danas-0123456789abcdef")
	at := console + "/conversations/" + h.Conversation
	_, page := dana.read(dana.browser.Get(at))
	answer := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(page)
	dana.read(dana.browser.PostForm(console+answer[1], url.Values{"form_token": {form}, "verdict": {"allow"}}))
	waitFor(t, "the end of the turn", func() bool { _, page = dana.read(dana.browser.Get(at)); return strings.Contains(page, "Packed.") })
	response, err := dana.browser.PostForm(at+"/fork", url.Values{"form_token": {form}, "at": {"1"}})
	dana.read(response, err)
	at = response.Request.URL.String()
	dana.read(dana.browser.PostForm(at+"/resume", url.Values{"form_token": {form}}))
	waitFor(t, "the call of the fork", func() bool {
		_, page = dana.read(dana.browser.Get(at))
		return strings.Contains(page, "May this call be made?")
	})
	if _, text := dana.read(dana.browser.PostForm(console+"/conversations", url.Values{"form_token": {form}, "message": {"Hello?"}})); strings.Contains(text, "Hello?") {
		t.Errorf("an operator without an owner has a conversation: %s", text)
	}
}

// After a reload with which nobody is identified, no text logs in to the console.
func TestConsoleAfterAReloadToOpen(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "false", "console = \"operate\"\n"+clientAda)
	login := strings.TrimSuffix(r.url, "/mcp") + "/console/login"
	ada, eve := newVisitor(t), newVisitor(t)
	console, _ := ada.intoConsole(r.service, adaToken)
	r.write("false", "console = \"operate\"\nopen = true")
	r.reload(exit.Done)
	if status, text := eve.read(eve.browser.PostForm(login, url.Values{"token": {"x"}})); status != http.StatusUnauthorized {
		t.Errorf("any text logs in: %d %s", status, text)
	}
	if status, text := ada.read(ada.browser.Get(console + "/")); status != http.StatusForbidden {
		t.Errorf("a session goes on: %d %s", status, text)
	}
}
