// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/hostile"
)

var march = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

// spent puts a conversation into the store in which a model has called tools on a day of March 2026.
func spent(t *testing.T, store history.Store, name, owner, model string, day int, input int64, tools ...string) {
	t.Helper()
	at := func(id string) canister.Head {
		return canister.Head{ID: id, Time: time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC)}
	}
	all := []canister.Canister{canister.User{Head: at("u"), Content: canister.Texts("x")},
		canister.Assistant{Head: at("a"), Model: model, Usage: &canister.Usage{Input: input, Cached: 1, Output: 10},
			Finish: canister.FinishInvocations}}
	for i, tool := range tools {
		all = append(all, canister.Invocation{Head: at(fmt.Sprint("i", i)), Message: "a", CallID: fmt.Sprint(i), Name: tool, Arguments: "{}"})
	}
	stored(t, store, name, owner, all...)
}

// Spending is filtered by day, identity, model and tool, and the exports have the same numbers. A
// person has the own ones only.
func TestSpend(t *testing.T) {
	prices := &budget.Policy{Prices: map[string]budget.Price{"small": {Input: budget.Unit}, "large": {Input: 2 * budget.Unit}}, Currency: "EUR"}
	s := consolestage.Start(t, consolestage.Options{Budget: prices, Now: func() time.Time { return march }})
	spent(t, s.Store, "one", "owner-ada", "small", 2, 1_000_000, "local__weather", "local__weather")
	spent(t, s.Store, "two", "owner-ada", "large", 30, 2_000_000)
	spent(t, s.Store, "three", "owner-ben", "small", 31, 4_000_000, "local__book_seat")
	spent(t, s.Store, "four", "", "other", 1, 8_000_000)
	ops := s.Login(t, consolestage.Ops)
	for query, want := range map[string]string{
		"":                               "7000030 9.00 3", // 30 days
		"?from=2026-03-01":               "15000040 9.00 3",
		"?from=2026-03-02&to=2026-03-30": "3000020 5.00 2",
		"?from=2026-03-31":               "4000010 4.00 1",
		"?to=2026-03-01":                 "8000010 0.00 0",
		"?who=ADA":                       "3000020 5.00 2",
		`?who="owner-ada"`:               "3000020 5.00 2",
		`?who="owner-"`:                  "0 0.00 0",
		"?from=2026-03-01&who=without":   "8000010 0.00 0",
		"?model=SMALL":                   "5000020 5.00 3",
		"?model=small&who=ben":           "4000010 4.00 1",
		"?tool=weather":                  "1000010 1.00 2",
		"?tool=nothing":                  "0 0.00 0",
		"?from=2025-03-31&who=owner-":    "7000030 9.00 3",
	} {
		tokens, money, calls := exported(t, ops, query)
		if got := fmt.Sprintf("%d %s %d", tokens, money, calls); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{"?from=2025-03-30": "367 days", "?from=2026-04-01": "after the last", "?from=x": "A day is",
		"?to=2026-02-30": "A day is"} {
		if page := ops.Get("/spend" + query).Text; !strings.Contains(page, want) || ops.Get("/spend.csv"+query).StatusCode != http.StatusBadRequest {
			t.Errorf("%q lacks %q:\n%s", query, want, page)
		}
	}
	for _, path := range []string{"/spend", "/spend.json", "/audit.jsonl", "/conversations"} {
		for _, query := range []string{"?who=%zz", "?who=owner-ada;x"} {
			if reply := ops.Get(path + query); reply.StatusCode != http.StatusBadRequest || !strings.Contains(reply.Text, "is damaged") {
				t.Errorf("%s%s, whose filter cannot be read: %s", path, query, reply.Status)
			}
		}
	}
	page := ops.Get("/spend?model=small").Text
	for _, want := range []string{`<a href="/console/spend?from=2026-03-02&amp;model=small&amp;to=2026-03-31&amp;who=%22owner-ben%22">owner-ben</a>`,
		"4.00 EUR", "5.00 EUR", "in 2 conversations.", "2026-03-31: 4000010 tokens",
		`href="/console/spend.csv?from=2026-03-02&amp;model=small&amp;to=2026-03-31"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	ada := s.Login(t, consolestage.Ada)
	if tokens, _, _ := exported(t, ada, "?from=2026-03-01&who=ben"); tokens != 3000020 || strings.Contains(ada.Get("/spend").Text, "owner-ben") {
		t.Errorf("a person gets %d tokens", tokens)
	}
	for _, want := range []string{
		`{"format":"csv","from":"2026-03-02","to":"2026-03-31"}`, `{"format":"json","from":"2026-03-01","to":"2026-03-31","who":"ben"}`,
	} {
		if trail, err := os.ReadFile(s.Audit); err != nil || !strings.Contains(string(trail), `"tool":"export_spend","arguments":`+want) {
			t.Errorf("%v; the audit lacks the export %s:\n%s", err, want, trail)
		}
	}
}

// Only the calls that the model asked for count, and not the calls that a program made.
func TestSpendOfPrograms(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: march} }
	stored(t, s.Store, "program", "owner-ada", canister.User{Head: head("u"), Content: canister.Texts("x")},
		canister.Assistant{Head: head("a"), Model: "small", Usage: &canister.Usage{Input: 1000, Output: 10}, Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("p"), Message: "a", CallID: "1", Name: "code__run_code", Arguments: "{}"},
		canister.Invocation{Head: head("q"), Message: "a", CallID: "2", Name: "local__weather", Arguments: "{}", Parent: "p"},
		canister.Invocation{Head: head("r"), Message: "a", CallID: "3", Name: "local__weather", Arguments: "{}", Parent: "p"})
	ada := s.Login(t, consolestage.Ada)
	for query, want := range map[string]string{"": "1010 1", "?tool=run_code": "1010 1", "?tool=weather": "0 0"} {
		tokens, _, calls := exported(t, ada, query)
		if got := fmt.Sprint(tokens, calls); got != want {
			t.Errorf("%q: %s tokens and calls, want %s", query, got, want)
		}
	}
}

// listing is a store whose lists wait.
type listing struct {
	history.Store
	begun, end chan struct{}
}

func (l *listing) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	if f.Since.IsZero() { // not for spending
		return l.Store.List(ctx, f)
	}
	l.begun <- struct{}{}
	<-l.end
	return l.Store.List(ctx, f)
}

// A person has two exports at once, and another person has their own.
func TestManyExports(t *testing.T) {
	store := &listing{history.NewMemory(), make(chan struct{}), make(chan struct{})}
	s := consolestage.Start(t, consolestage.Options{Store: store, Now: func() time.Time { return march }})
	ops, other := s.Login(t, consolestage.Ops), s.Login(t, consolestage.Aud)
	status := make(chan string)
	export := func(p *consolestage.Person, path string) {
		reply := p.Open(http.MethodGet, path, nil)
		_ = reply.Body.Close()
		status <- reply.Status
	}
	for _, p := range []*consolestage.Person{ops, ops, other} {
		go export(p, "/spend.csv")
		<-store.begun
	}
	for _, path := range []string{"/spend.json", "/audit.jsonl"} {
		if reply := ops.Get(path); reply.StatusCode != http.StatusTooManyRequests || !strings.Contains(reply.Text, "2 exports") {
			t.Errorf("%s: %s\n%s", path, reply.Status, reply.Text)
		}
	}
	close(store.end)
	for range 3 {
		if got := <-status; got != "200 OK" {
			t.Errorf("an export: %s", got)
		}
	}
	if reply := ops.Get("/audit.jsonl"); reply.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", reply.Status)
	}
}

// An export is complete, or refused: it does not leave out what could not be read in time.
func TestSpendExportIsComplete(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Patience: time.Nanosecond})
	for i := range 3 {
		spent(t, s.Store, fmt.Sprint(i), "owner-ada", "small", 1, 1)
	}
	ops := s.Login(t, consolestage.Ops)
	if reply := ops.Get("/spend.json?from=2026-03-01&to=2026-03-31"); reply.StatusCode != http.StatusInternalServerError ||
		!strings.Contains(reply.Text, "choose a later first day") {
		t.Errorf("%s\n%s", reply.Status, reply.Text)
	}
	if page := ops.Get("/spend?from=2026-03-01&to=2026-03-31").Text; !strings.Contains(page, "too many conversations") {
		t.Errorf("the page does not say that it lacks some:\n%s", page)
	}
}

// Names in an export are texts, also for spreadsheets.
func TestHostileNamesInSpend(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	names := append([]string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", `"=1`, "the password is " + consolestage.Secret + "."}, hostile.Texts...)
	for i, name := range names {
		name = strings.ReplaceAll(strings.ToValidUTF8(name, "?"), "\x00", "")
		spent(t, s.Store, fmt.Sprint("c", i), strings.ToValidUTF8(name[:min(len(name), 1000)], ""), name, 31, 1, name)
	}
	ops := s.Login(t, consolestage.Ops)
	checkPage(t, "/spend", ops.Get("/spend").Text)
	for kind, want := range map[string]string{"csv": "text/csv; charset=utf-8; header=present", "json": "application/json; charset=utf-8"} {
		reply := ops.Get("/spend." + kind)
		if got := reply.Header.Get("Content-Type"); got != want || !strings.HasPrefix(reply.Header.Get("Content-Disposition"),
			"attachment") || strings.Contains(reply.Text, consolestage.Secret) {
			t.Errorf("%s: %s, %s", kind, got, reply.Header)
		}
		if strings.ContainsFunc(reply.Text, func(r rune) bool { return r != '\n' && r != '\r' && r != '\t' && display.IsInvisible(r) }) {
			t.Errorf("%s has invisible characters", kind)
		}
	}
	lines, err := csv.NewReader(strings.NewReader(ops.Get("/spend.csv").Text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		for _, name := range line[1:4] {
			if strings.ContainsAny(name[:min(1, len(name))], "=+-@\t\r") {
				t.Errorf("a spreadsheet takes %q for a formula", name)
			}
		}
	}
}

// exported returns the sums of both exports, which must be equal.
func exported(t *testing.T, p *consolestage.Person, query string) (tokens int64, money budget.Money, calls int64) {
	t.Helper()
	var form []struct {
		Day, Identity, Model, Tool, Money, Currency string
		Exchanges, Input, Cached, Output, Calls     int64
	}
	if err := json.Unmarshal([]byte(p.Get("/spend.json"+query).Text), &form); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(p.Get("/spend.csv" + query).Text)).ReadAll()
	if err != nil || len(lines) != len(form)+1 || strings.Join(lines[0],
		",") != "day,identity,model,tool,exchanges,input,cached,output,money,currency,calls" {
		t.Fatalf("%v, %d lines for %d objects: %q", err, len(lines), len(form), lines)
	}
	for i, one := range form {
		if got, want := strings.Join(lines[i+1], ","), fmt.Sprintf("%s,%s,%s,%s,%d,%d,%d,%d,%s,%s,%d", one.Day, one.Identity, one.Model, one.Tool,
			one.Exchanges, one.Input, one.Cached, one.Output, one.Money, one.Currency, one.Calls); got != want {
			t.Errorf("the line %q, the object %q", got, want)
		}
		tokens, calls = tokens+one.Input+one.Output, calls+one.Calls
		if one.Money != "" {
			amount, err := budget.ParseMoney(one.Money)
			if err != nil {
				t.Fatal(err)
			}
			money += amount
		}
	}
	return tokens, money, calls
}
