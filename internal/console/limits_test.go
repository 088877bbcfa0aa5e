// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/invoker/audit"
)

// Four pages that read much are made for a person at once, and another person has their own.
func TestManyPages(t *testing.T) {
	store := &listing{history.NewMemory(), make(chan struct{}), make(chan struct{})}
	s := consolestage.Start(t, consolestage.Options{Store: store, Now: func() time.Time { return march }})
	ops, other := s.Login(t, consolestage.Ops), s.Login(t, consolestage.Ada)
	status := make(chan string)
	for _, p := range []*consolestage.Person{ops, ops, ops, ops, other} {
		go func() {
			reply := p.Open(http.MethodGet, "/spend", nil)
			_ = reply.Body.Close()
			status <- reply.Status
		}()
		<-store.begun
	}
	for _, path := range []string{"/", "/waiting", "/spend", "/conversations?q=x", "/audit"} {
		if reply := ops.Get(path); reply.StatusCode != http.StatusTooManyRequests || !strings.Contains(reply.Text, "4 pages") {
			t.Errorf("%s: %s\n%s", path, reply.Status, reply.Text)
		}
	}
	if reply := ops.Get("/tools"); reply.StatusCode != http.StatusOK {
		t.Errorf("another page: %s", reply.Status)
	}
	close(store.end)
	for range 5 {
		if got := <-status; got != "200 OK" {
			t.Errorf("a page: %s", got)
		}
	}
	if reply := ops.Get("/waiting"); reply.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", reply.Status)
	}
}

// recorded returns the records of a tool or action.
func recorded(t *testing.T, s *consolestage.Stage, tool string) (list []audit.Record) {
	t.Helper()
	text, err := os.ReadFile(s.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for one, err := range audit.Read(bytes.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		if one.Tool == tool {
			list = append(list, one)
		}
	}
	return list
}

// The audit has who read the conversation of another person, once an hour and session, and each copy, but
// not what people read of their own.
func TestReadingIsRecorded(t *testing.T) {
	now := march
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return now }})
	stored(t, s.Store, "plan", "owner-ada")
	ada, aud := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Aud)
	for _, p := range []*consolestage.Person{ada, aud} {
		for _, path := range []string{"", "", "/images/1/0", "/raw", "/raw"} {
			p.Get("/conversations/plan" + path)
		}
	}
	if read := recorded(t, s, "read_conversation"); len(read) != 1 || read[0].By != "aud" || read[0].Conversation != "plan" {
		t.Errorf("the records of reading: %+v", read)
	}
	if copied := recorded(t, s, "export_conversation"); len(copied) != 2 || copied[0].By != "aud" {
		t.Errorf("the records of copies: %+v", copied)
	}
	stored(t, s.Store, "waits", "owner-ada", asking("waits", "", "1", `{"path":"a.txt"}`)...)
	for i, path := range []string{"/conversations/plan", "/conversations?q=secret", "/waiting"} {
		now = now.Add(time.Hour)
		for _, p := range []*consolestage.Person{ada, aud} {
			p.Get("/conversations")
			p.Get(path)
		}
		if read := recorded(t, s, "read_conversation"); len(read) != 2+i {
			t.Errorf("%s: %+v", path, read)
		}
	}
}

// The audit has the logins that fail, with their addresses, and without their tokens. A flood of them does not
// fill the disk.
func TestFailedLoginsAreRecorded(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	stranger := s.Stranger(t)
	login := func(token string) { stranger.Do(http.MethodPost, "/login", map[string][]string{"token": {token}}) }
	login("a-token-that-is-none")
	login(consolestage.Off)
	login("")
	stranger.Get("/link?code=none")
	logins := recorded(t, s, "login")
	if len(logins) != 4 || logins[0].Code != "UNAUTHORIZED" || logins[1].Code != "DENIED" || logins[1].ClientName != "off" ||
		!strings.Contains(string(logins[3].Arguments), `"address":"127.0.0.1"`) {
		t.Errorf("the records: %+v", logins)
	}
	for range 100 {
		login("a-token-that-is-none")
	}
	logins = recorded(t, s, "login")
	if len(logins) != 60 || !strings.Contains(logins[59].Error, "not recorded") {
		t.Errorf("%d records; the last: %+v", len(logins), logins[len(logins)-1])
	}
	for _, one := range logins {
		if form, _ := json.Marshal(one); strings.Contains(string(form), "a-token-that-is-none") || strings.Contains(string(form),
			consolestage.Off) {
			t.Fatalf("a record has a token: %s", form)
		}
	}
}

// The export of the audit has all records of the file that match, also of one larger than the page reads.
func TestAuditExportIsComplete(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	var all bytes.Buffer
	for i := range 40 {
		line, err := json.Marshal(audit.Record{Tool: fmt.Sprintf("tool-%d", i%2), Code: audit.OK, Arguments: json.RawMessage(`"` +
			strings.Repeat("x", 1<<19) + `"`)})
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(line, '\n'))
	}
	if err := os.WriteFile(s.Audit, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	export := s.Login(t, consolestage.Aud).Get("/audit.jsonl?tool=tool-1").Text
	if n := strings.Count(export, `"tool":"tool-1"`); n != 20 || strings.Contains(export, `"tool-0"`) {
		t.Errorf("the export has %d records of 20, in %d bytes", n, len(export))
	}
}

// The page and the export of the audit name the lines of the file that are not records.
func TestAuditNamesDamage(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	line, err := json.Marshal(audit.Record{Tool: "tool-1", Code: audit.OK})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Audit, fmt.Appendf(nil, "%s\n%s\n%s\n", line, line[:len(line)/2], line), 0o600); err != nil {
		t.Fatal(err)
	}
	aud := s.Login(t, consolestage.Aud)
	if page := aud.Get("/audit?tool=other").Text; !strings.Contains(page, "Lines of the file that are not records: 1") || !strings.Contains(page, "line 2") {
		t.Errorf("the page does not name line 2:\n%s", page)
	}
	lines := strings.Split(aud.Get("/audit.jsonl?tool=tool-1").Text, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[1], `"audit: line 2 is not a record: `) || !strings.Contains(lines[0], "tool-1") || !strings.Contains(lines[2], "tool-1") {
		t.Errorf("the export is %q", lines)
	}
}

// The page of spending says that costs are missing.
func TestUnknownCosts(t *testing.T) {
	prices := &budget.Policy{Prices: map[string]budget.Price{"small": {Input: budget.Unit}, "large": {Input: budget.Unit}}, Currency: "EUR"}
	s := consolestage.Start(t, consolestage.Options{Budget: prices, Now: func() time.Time { return march }})
	spent(t, s.Store, "one", "owner-ada", "small", 2, 1_000_000)
	ada := s.Login(t, consolestage.Ada)
	const notice = "is not known, because the model has no price"
	if page := ada.Get("/spend?from=2026-03-01").Text; strings.Contains(page, notice) {
		t.Errorf("each exchange has a price:\n%s", page)
	}
	spent(t, s.Store, "two", "owner-ada", "other", 2, 1_000_000)
	if page := ada.Get("/spend?from=2026-03-01").Text; !strings.Contains(page, "The cost of 1 exchange "+notice) {
		t.Errorf("one has none:\n%s", page)
	}
}

// What a page says a conversation costs is about the canisters that it says.
func TestCostOfPage(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	var all []canister.Canister
	for i := range 202 {
		all = append(all, canister.User{Head: canister.Head{ID: fmt.Sprint("u", i)}, Content: canister.Texts("x")},
			canister.Assistant{Head: canister.Head{ID: fmt.Sprint("a", i)}, Usage: &canister.Usage{Input: 10, Output: 1},
				Finish: canister.FinishStop})
	}
	stored(t, s.Store, "plan", "owner-ada", all...)
	ada := s.Login(t, consolestage.Ada)
	for query, want := range map[string]string{"": "1000 in, 100 out (canisters 205 to 404)", "?to=4": "20 in, 2 out (canisters 1 to 4)"} {
		if page := ada.Get("/conversations/plan" + query).Text; !strings.Contains(page, want) {
			t.Errorf("%q lacks %q:\n%.3000s", query, want, page)
		}
	}
}

// An audit file that cannot be read does not look like one without records.
func TestUnreadableAudit(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ops := s.Login(t, consolestage.Ops)
	s.Console.Records = t.TempDir
	if reply := ops.Get("/audit"); reply.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s\n%s", reply.Status, reply.Text)
	}
}
