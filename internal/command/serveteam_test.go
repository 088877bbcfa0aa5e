// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// team is a gateway in front of servers for people: the first half of them have tokens of the
// configuration, the others of an issuer. Every third works in ops, the others in dev. At the server
// s0 everyone has a login of their own, s1 is for ops, and calls that write to s2 need an
// approval of dana.
type team struct {
	t       *testing.T
	servers int
	people  []*member
	notes   *authserver.Server
	gateway *service
	path    string
	trail   string
}

type member struct {
	name, token, group string
	session            *mcp.ClientSession
	login              string         // which s0 has for this person
	made               map[string]int // calls, by server and tool
}

const danasToken = "dana-0123456789abcdef"

func newTeam(t *testing.T, servers, people int) *team {
	w := &team{t: t, servers: servers, trail: filepath.Join(t.TempDir(), "audit.jsonl")}
	w.notes, w.path = ownLogins(t)
	text, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	notes, _, _ := strings.Cut(string(text), "[serve]")
	var tables strings.Builder
	tables.WriteString(strings.ReplaceAll(notes, "[mcp.notes", "[mcp.s0"))
	for i := 1; i < servers; i++ {
		fmt.Fprintf(&tables, "[mcp.s%d]\nurl = %q\n", i, echoing(t, i))
	}
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	const audience = "the gateway"
	fmt.Fprintf(&tables, teamTables, w.trail, web.URL, audience, danasToken)
	for i := range people {
		m := &member{name: fmt.Sprintf("p%02d", i), group: map[bool]string{true: "ops", false: "dev"}[i%3 == 0], made: map[string]int{}}
		if i < people/2 {
			m.token = m.name + "-0123456789abcdef"
			fmt.Fprintf(&tables, "[[serve.clients]]\nname = %q\ntoken = %q\ntrusted = {groups = {json = true, value = '[%q]'}}\n", m.name, m.token, m.group)
		} else {
			m.name += "@example.com"
			m.token = key.Sign(issuer.Claims(audience, map[string]any{"sub": m.name, "email": m.name, "groups": []string{m.group}}), nil)
		}
		w.people = append(w.people, m)
	}
	w.path = file(t, tables.String())
	k := startTalk(t, "login", "s0", "--config", w.path)
	response, err := http.Get(authserver.Redirect(t, http.DefaultTransport, k.until(linkPattern)).String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	k.ends()
	w.gateway = serve(t, true, "--config", w.path)
	return w
}

const teamTables = historyTable + `
[audit]
file = %q
identity = ["groups"]
sync = false
[serve]
http = "127.0.0.1:0"
watch = false
[serve.oidc]
issuer = %q
audience = %q
name = "email"
trusted = {groups = "/groups"}
[[serve.rules]]
action = "deny"
ensembles = ["s1"]
when = 'not ("ops" in trusted.groups)'
[[serve.rules]]
action = "ask"
ensembles = ["s2"]
tools = ["write"]
who = "dana"
[[serve.clients]]
name = "dana"
token = %q
trusted = {groups = {json = true, value = '["ops"]'}}
console = "answer"
`

// echoing returns the URL of a server whose calls answer with its number.
func echoing(t *testing.T, number int) string {
	return mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":"server %d"}]}`, number))
		}
		return m.Method == "tools/call"
	}).URL
}

// works lets a person log in at s0, call what there is, and try what is not for this person.
func (w *team) works(m *member) {
	person := newVisitor(w.t)
	m.session = w.gateway.visiting(m.token, func(link string) string {
		go func() {
			if status, text := person.open(link, m.token); status != http.StatusOK {
				w.t.Errorf("%s: the login page: %d %s", m.name, status, text)
			}
		}()
		return "accept"
	})
	names := toolNames(w.t, m.session)
	if isSeen := slices.Contains(names, "s1__write"); isSeen != (m.group == "ops") || len(names) != 2*w.servers-map[bool]int{true: 0, false: 2}[isSeen] {
		w.t.Errorf("%s of %s sees %q", m.name, m.group, names)
	}
	for i := range w.servers {
		server, want := fmt.Sprintf("s%d", i), fmt.Sprintf("server %d", i)
		said := called(w.t, m.session, server+"__read", "{}")
		m.made[server+" read"]++
		switch {
		case i == 0:
			if m.login = said; !strings.HasPrefix(said, "login ") {
				w.t.Errorf("%s at s0: %s", m.name, said)
			}
		case i == 1 && m.group != "ops":
			if delete(m.made, "s1 read"); !strings.Contains(said, "unknown tool") {
				w.t.Errorf("%s at s1: %s", m.name, said)
			}
		case said != want:
			w.t.Errorf("%s at %s: %s", m.name, server, said)
		}
	}
	if said := called(w.t, m.session, "s2__write", `{"of":"`+m.name+`"}`); !strings.HasPrefix(said, "CONFLICT: ") {
		w.t.Errorf("%s writes without an approval: %s", m.name, said)
	}
}

// everyone runs a function for each person, 10 at a time.
func (w *team) everyone(do func(*member)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 10)
	for _, m := range w.people {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(m)
		})
	}
	all.Wait()
}

// approves lets dana, who is no operator, allow in the console what waits for her, except the calls
// of one person.
func (w *team) approves(not string) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	browser, at := &http.Client{Jar: jar}, strings.TrimSuffix(w.gateway.url, "/mcp")
	page := func(response *http.Response, err error) string {
		if err != nil {
			w.t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			w.t.Fatalf("%s: %s %v\n%s", response.Request.URL, response.Status, err, text)
		}
		return string(text)
	}
	page(browser.PostForm(at+"/console/login", url.Values{"token": {danasToken}}))
	waiting := page(browser.Get(at + "/console/waiting"))
	form := regexp.MustCompile(`name="form_token" value="([^"]+)"|value="([^"]+)" name="form_token"`).FindStringSubmatch(waiting)
	asked := regexp.MustCompile(`(?s)<article class="wait".*?</article>`).FindAllString(waiting, -1)
	if len(asked) != len(w.people) || form == nil {
		w.t.Fatalf("%d calls wait for dana, want %d\n%s", len(asked), len(w.people), waiting)
	}
	for _, one := range asked {
		action := regexp.MustCompile(`action="(/console/waiting/[^"]+)"`).FindStringSubmatch(one)
		verdict := url.Values{"form_token": {cmp.Or(form[1], form[2])}, "verdict": {"allow"}}
		if strings.Contains(one, not) {
			verdict["verdict"], verdict["reason"] = []string{"deny"}, []string{"not today"}
		}
		page(browser.PostForm(at+action[1], verdict))
	}
	if left := page(browser.Get(at + "/console/waiting")); !strings.Contains(left, "Nothing waits.") {
		w.t.Errorf("after the answers:\n%s", left)
	}
	for _, path := range []string{"/console/audit", "/console/pins"} { // what only operators may
		response, err := browser.Get(at + path)
		if err != nil {
			w.t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != http.StatusForbidden {
			w.t.Errorf("dana at %s: %s", path, response.Status)
		}
	}
}

// reads is the auditor: who did what, with whose approval.
func (w *team) reads() (made map[string]map[string]int, by map[string]string) {
	text, err := os.Open(w.trail)
	if err != nil {
		w.t.Fatal(err)
	}
	defer text.Close()
	made, by = map[string]map[string]int{}, map[string]string{}
	for r, err := range audit.Read(text) {
		switch {
		case err != nil:
			w.t.Fatal(err)
		case r.Tool == "write" && r.By != "":
			by[r.ClientName] += r.By + " " + r.Code
		case r.Code == audit.OK && r.Asker == "mcp":
			if made[r.ClientName] == nil {
				made[r.ClientName] = map[string]int{}
			}
			made[r.ClientName][r.Ensemble+" "+r.Tool]++
		}
	}
	return made, by
}

// TestTeam: one gateway in front of servers for people with their own logins and rights. The audit
// has who did what, and with whose approval. CONSORT_TEST_TEAM=20x50 is the team of a company.
func TestTeam(t *testing.T) {
	t.Parallel()
	servers, people := 4, 6
	if size := os.Getenv("CONSORT_TEST_TEAM"); size != "" {
		if _, err := fmt.Sscanf(size, "%dx%d", &servers, &people); err != nil {
			t.Fatal(err)
		}
	}
	w := newTeam(t, servers, people)
	w.everyone(w.works)
	logins := map[string]string{}
	for _, m := range w.people {
		if other := logins[m.login]; other != "" {
			t.Errorf("%s and %s have the same login at s0", m.name, other)
		}
		logins[m.login] = m.name
	}
	w.gateway.signal(os.Interrupt)
	w.gateway.ends(exit.Done)
	w.gateway = serve(t, true, "--config", w.path)
	refused := w.people[1]
	w.approves(refused.name)
	w.everyone(func(m *member) {
		m.session = w.gateway.connect(m.token)
		if m.made["s0 read"]++; called(t, m.session, "s0__read", "{}") != m.login {
			t.Errorf("after a restart %s has another login", m.name)
		}
		said := called(t, m.session, "s2__write", `{"of":"`+m.name+`"}`)
		if m == refused && !strings.Contains(said, "not today") || m != refused && said != "server 2" {
			t.Errorf("%s writes after the answer: %s", m.name, said)
		}
	})
	w.gateway.signal(os.Interrupt)
	w.gateway.ends(exit.Done)
	made, by := w.reads()
	for _, m := range w.people {
		if fmt.Sprint(made[m.name]) != fmt.Sprint(m.made) {
			t.Errorf("%s made %v, and the audit has %v", m.name, m.made, made[m.name])
		}
		if want := map[bool]string{true: "dana DENIED", false: "dana OK"}[m == refused]; by[m.name] != want {
			t.Errorf("the audit of the write of %s: %q, want %q", m.name, by[m.name], want)
		}
	}
	if n := w.notes.Count("/token authorization_code"); n != people+1 { // the program's user lists the tools
		t.Errorf("%d logins", n)
	}
	if len(made) != people {
		t.Errorf("the audit has calls of %d people", len(made))
	}
}
