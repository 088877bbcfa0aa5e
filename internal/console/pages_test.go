// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// begun begins a conversation in the browser of a person and returns its path when its turn
// has ended as far as want, a text of its page.
func begun(t *testing.T, s *consolestage.Stage, p *consolestage.Person, want string) (path string) {
	t.Helper()
	reply := p.Post("/conversations", "message", "Do it.")
	if reply.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s\n%s", reply.Status, p.Get("/conversations").Text)
	}
	path = strings.TrimPrefix(reply.Header.Get("Location"), "/console")
	until(t, s, p, path, want)
	return path
}

// until follows the stream of a conversation until its page has a text.
func until(t *testing.T, s *consolestage.Stage, p *consolestage.Person, path, want string) {
	t.Helper()
	response := p.Open(http.MethodGet, path+"/live?after=1", nil, "Accept", "text/event-stream")
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: ended") || strings.HasPrefix(lines.Text(), "event: entry") {
			if strings.Contains(p.Get(path).Text, want) {
				return
			}
		}
	}
	t.Fatalf("%s lacks %q:\n%s", path, want, p.Get(path).Text)
}

// A conversation that is begun in the console shows its calls, waits for an approval, and
// continues with the answer of the person; the audit has who did what.
func TestApprovalInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{
		{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: `{"path":"a.txt","old_text":"one","new_text":"two"}`}}},
		{Text: "It is done."},
	}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "May this call be made?")
	page := ada.Get("/waiting").Text
	form := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(page)
	for _, want := range []string{"local__edit_file", "- one", "+ two", "Allow this call"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of waits lacks %q:\n%s", want, page)
		}
	}
	if reply := ada.Post(form[1], "verdict", "allow"); reply.StatusCode != http.StatusSeeOther {
		t.Fatal(reply.Status)
	}
	until(t, s, ada, path, "It is done.")
	page = ada.Get(path).Text
	for _, want := range []string{"replaced in a.txt", "allowed by ada", "took "} {
		if !strings.Contains(page, want) {
			t.Errorf("the conversation lacks %q:\n%s", want, page)
		}
	}
	if reply := ada.Post(form[1], "verdict", "allow"); reply.StatusCode != http.StatusSeeOther || !strings.Contains(ada.Get("/waiting").Text,
		"was answered already") {
		t.Errorf("the second answer: %s", reply.Status)
	}
	trail, err := os.ReadFile(s.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"login", "begin", "answer"} {
		if !regexp.MustCompile(`"asker":"console","client_name":"ada".*"tool":"` + action + `"`).Match(trail) {
			t.Errorf("the audit lacks %s:\n%s", action, trail)
		}
	}
}

// A question of a tool is a form, whose answer the tool gets.
func TestQuestionInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{
		{Calls: []conversetest.Call{{Name: "local__book_seat", Arguments: `{}`}}}, {Text: "Booked."},
	}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "Which seat?")
	form := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(ada.Get(path).Text)
	if page := ada.Post(form[1], "verdict", "accept", "v-seat", "roof").Text; !strings.Contains(page, "notice failed") {
		t.Errorf("an answer that is not a choice is accepted:\n%s", page)
	}
	ada.Post(form[1], "verdict", "accept", "v-seat", "aisle")
	until(t, s, ada, path, "Booked.")
	if page := ada.Get(path).Text; !strings.Contains(page, "booked: aisle") {
		t.Errorf("the tool has another answer:\n%s", page)
	}
}

// The stream of a conversation continues after the last event, also a stream that was cut
// off, and sends each entry as the page has it.
func TestLiveContinues(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "First."}, {Text: "Second."}}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "First.")
	ada.Post(path+"/send", "message", "And?")
	until(t, s, ada, path, "Second.")
	entry := func(after string) (ids []string) {
		response := ada.Open(http.MethodGet, path+"/live?after=1", nil, "Accept", "text/event-stream", "Last-Event-ID", after)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), `data: {"html"`); ok {
				var e struct{ ID, HTML string }
				if err := json.Unmarshal([]byte(`{"html"`+data), &e); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, e.ID)
				if !strings.Contains(ada.Get(path).Text, e.HTML) {
					t.Errorf("the page lacks %s", e.HTML)
				}
			}
			if len(ids) > 0 && ids[len(ids)-1] == "c4" {
				return ids
			}
		}
		t.Fatal("the stream ended")
		return nil
	}
	for after, want := range map[string]string{"1": "[c2 c3 c4]", "2": "[c3 c4]", "3": "[c4]"} {
		if got := fmt.Sprint(entry(after)); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	for _, bad := range []string{"0", "99", "x"} {
		if reply := ada.Get(path + "/live?after=" + bad); reply.StatusCode != http.StatusBadRequest {
			t.Errorf("after=%s: %s", bad, reply.Status)
		}
	}
}

// A page that is opened while the model writes gets the text so far, and so does a page that connects
// again.
func TestLiveTextBeforeThePage(t *testing.T) {
	ready, hold := make(chan struct{}), make(chan struct{})
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{
		Expect: func(*converse.Request) error { <-ready; return nil }, Text: "It rains in Bergen today.", Wait: hold,
	}}})
	ada := s.Login(t, consolestage.Ada)
	reply := ada.Post("/conversations", "message", "What is new?")
	path := strings.TrimPrefix(reply.Header.Get("Location"), "/console")
	streamed, begin := "", sync.OnceFunc(func() { close(ready) })
	for happened, err := range s.Engine.Watch(t.Context(), strings.TrimPrefix(path, "/conversations/"), 0) {
		if delta, ok := happened.(engine.Delta); ok {
			streamed += delta.Text()
		}
		begin()
		if err != nil || strings.HasSuffix(streamed, "today.") {
			break
		}
	}
	read := func(enough func(text string) bool) (text, id string) {
		response := ada.Open(http.MethodGet, path+"/live?after=1", nil)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if after, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = after
			}
			if data, ok := strings.CutPrefix(lines.Text(), `data: {"text"`); ok {
				var delta struct{ Text string }
				if err := json.Unmarshal([]byte(`{"text"`+data), &delta); err != nil {
					t.Fatal(err)
				}
				if text += delta.Text; enough(text) {
					return text, id
				}
			}
		}
		return text, id
	}
	first, id := read(func(text string) bool { return len(text) > 5 })
	again, _ := read(func(text string) bool { return strings.HasSuffix(text, "today.") })
	if !strings.HasPrefix(again, first) || again != "It rains in Bergen today." || id != "" {
		t.Errorf("the stream has %q with the ID %q, and another one %q", first, id, again)
	}
	close(hold)
	until(t, s, ada, path, "It rains in Bergen today.")
}

// atOnce is a store whose conversations have all changed at the same time, as after an import.
type atOnce struct{ history.Store }

func (s atOnce) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		all := filter
		all.Until, all.Limit = time.Time{}, 0
		var list []history.Info
		for info, err := range s.Store.List(ctx, all) {
			if err != nil && !yield(info, err) {
				return
			}
			if info.Changed = time.Unix(1e9, 0); filter.Match(info) {
				list = append(list, info)
			}
		}
		slices.SortFunc(list, history.Info.Compare)
		for i, info := range list {
			if filter.Limit > 0 && i == filter.Limit || !yield(info, nil) {
				return
			}
		}
	}
}

// A list finds conversations by tool, failure and cost, and continues where it stopped, also
// among conversations that changed at the same time. It shows what has matched.
func TestHistoryPages(t *testing.T) {
	memory := history.NewMemory()
	for i := range 120 {
		call := canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "i", Name: fmt.Sprintf("tool_%d", i%2), Arguments: "{}"}
		code := map[bool]string{true: "TIMEOUT"}[i%3 == 0]
		stored(t, memory, fmt.Sprintf("c%03d", i), "owner-ada", canister.User{Head: canister.Head{ID: "u", Time: time.Now()}, Content: canister.Texts("x")},
			canister.Assistant{Head: canister.Head{ID: "a"}, Model: "m", Usage: &canister.Usage{Input: int64(i)}}, call, canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Code: code},
			canister.Assistant{Head: canister.Head{ID: "b"}, Content: canister.Texts("y")})
	}
	prices := &budget.Policy{Prices: map[string]budget.Price{"m": {Input: 1_000_000 * budget.Unit}}, Currency: "EUR"}
	for name, store := range map[string]history.Store{"in order": memory, "at once": atOnce{memory}} {
		s := consolestage.Start(t, consolestage.Options{Store: store, Budget: prices})
		ada := s.Login(t, consolestage.Ada)
		link, older := regexp.MustCompile(`/console/conversations/(c\d+)"`), regexp.MustCompile(`href="/console(/conversations\?[^"]*before=[^"]*)"`)
		for query, want := range map[string]struct {
			n       int
			passage string
		}{
			"": {120, ""}, "tool=tool_1": {60, "<mark>tool_1</mark>"}, "failed=1": {40, "<mark>TIMEOUT</mark>"}, "failed=1&tool=tool_1": {20, "<mark>TIMEOUT</mark>"},
			"cost=100": {20, "EUR</mark>"}, "q=y": {120, "<mark>y</mark>"}, "q=y&tool=tool_0&cost=100": {10, "<mark>tool_0</mark>"}, "cost=none": {0, "not an amount"},
		} {
			seen := map[string]bool{}
			for path := "/conversations?" + query; path != ""; {
				page := ada.Get(path).Text
				if !strings.Contains(page, want.passage) {
					t.Errorf("%s, %q: a page lacks %s:\n%s", name, query, want.passage, page)
				}
				for _, found := range link.FindAllStringSubmatch(page, -1) {
					seen[found[1]] = true
				}
				path = ""
				if next := older.FindStringSubmatch(page); next != nil {
					path = strings.ReplaceAll(next[1], "&amp;", "&")
				}
			}
			if len(seen) != want.n {
				t.Errorf("%s, %q finds %d, want %d", name, query, len(seen), want.n)
			}
		}
	}
}

// A tool is called with a form or with JSON, and its failure is shown.
func TestCallInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{[]string{"form", "fields", "v-city", "Oslo"}, "Snow in Oslo."},
		{[]string{"arguments", `{"city":"Bergen"}`}, "Snow in Bergen."},
		{[]string{"form", "fields", "v-city", "Atlantis"}, "NOT_FOUND"},
		{[]string{"form", "fields"}, "INVALID_ARGUMENTS"},
		{[]string{"arguments", `{`}, "INVALID_ARGUMENTS"},
	} {
		if reply := ada.Post("/tools/local__weather", c.fields...); !strings.Contains(reply.Text, c.want) {
			t.Errorf("%q: %s\n%s", c.fields, reply.Status, reply.Text)
		}
	}
	if reply := ada.Post("/tools/nothing"); reply.StatusCode != http.StatusNotFound {
		t.Error(reply.Status)
	}
}

// Calls that were made together are on one time axis; a single call has none.
func TestCallsOnAnAxis(t *testing.T) {
	s, at := consolestage.Start(t, consolestage.Options{}), time.Now()
	head := func(id string, after time.Duration) canister.Head { return canister.Head{ID: id, Time: at.Add(after)} }
	stored(t, s.Store, "together", "owner-ada", canister.User{Head: head("u", 0), Content: canister.Texts("Do it.")},
		canister.Assistant{Head: head("a", 0), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i", 0), Message: "a", CallID: "1", Name: "one", Arguments: "{}"},
		canister.Invocation{Head: head("j", 0), Message: "a", CallID: "2", Name: "two", Arguments: "{}"},
		canister.Result{Head: head("r", time.Second), Invocation: "i"},
		canister.Intent{Head: head("n", time.Second), Invocation: "j", Attempt: 1},
		canister.Result{Head: head("s", 4*time.Second), Invocation: "j"},
		canister.Assistant{Head: head("b", 4*time.Second), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("k", 4*time.Second), Message: "b", CallID: "3", Name: "alone", Arguments: "{}"},
		canister.Result{Head: head("q", 5*time.Second), Invocation: "k"})
	page := s.Login(t, consolestage.Ada).Get("/conversations/together").Text
	for _, want := range []string{
		`From 0s to 1s of the 4s that`, `x="0" width="250"`, `From 1s to 4s of the 4s that`, `x="250" width="750"`,
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	if n := strings.Count(page, `class="axis"`); n != 2 {
		t.Errorf("%d calls have an axis, want 2", n)
	}
}

// The parent of a fork is a link, but not that of an imported conversation, which no conversation has.
func TestParentsInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	for parent, isLinked := range map[string]bool{"parent": true, "import-1": false} {
		stored(t, s.Store, parent, "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Do it.")})
		if err := s.Store.Fork(t.Context(), parent, 1, "of-"+parent); err != nil {
			t.Fatal(err)
		}
		page := ada.Get("/conversations/of-" + parent).Text
		if strings.Contains(page, `/conversations/`+parent+`"`) != isLinked || !strings.Contains(page, parent) {
			t.Errorf("%s is linked: %v:\n%s", parent, !isLinked, page)
		}
	}
}

// The calls of a program are within the call of the program, which says how many there were.
func TestProgramsInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "program", "owner-ada",
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Do it.")},
		canister.Assistant{Head: canister.Head{ID: "a"}, Model: "scripted", Finish: canister.FinishInvocations},
		canister.Invocation{Head: canister.Head{ID: "p"}, Message: "a", CallID: "1", Name: "code__run_code", Arguments: `{"program":"local__weather()"}`},
		canister.Invocation{Head: canister.Head{ID: "q"}, Message: "a", CallID: "2", Name: "local__weather", Arguments: `{}`, Parent: "p"},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "q", Content: canister.Texts("snow in the program")},
		canister.Result{Head: canister.Head{ID: "s"}, Invocation: "p", Content: canister.Texts("the value")})
	page := s.Login(t, consolestage.Ada).Get("/conversations/program").Text
	outer, rest, _ := strings.Cut(page, "Calls of this program (1)")
	inner, _, _ := strings.Cut(rest, "</ol></details>")
	if !strings.Contains(outer, "Call of code__run_code") || strings.Contains(outer, "snow in the program") {
		t.Errorf("before the calls of the program:\n%s", outer)
	}
	if !strings.Contains(inner, "Call of local__weather") || !strings.Contains(inner, "snow in the program") {
		t.Errorf("the calls of the program:\n%s", inner)
	}
	if !strings.Contains(rest, "Result · 1 call") || !strings.Contains(rest, "the value") {
		t.Errorf("after the calls of the program:\n%s", rest)
	}
}

// An operator parks a server, whose calls fail then with the reason, and revives it.
func TestParkInTheConsole(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ops := s.Login(t, consolestage.Ops)
	calls := func() string {
		return ops.Post("/tools/local__weather", "form", "fields", "v-city", "Oslo").Text
	}
	if reply := s.Login(t, consolestage.Ada).Post("/ensembles/local/park"); reply.StatusCode != http.StatusForbidden {
		t.Errorf("a client parks a server: %s", reply.Status)
	}
	if text := calls(); !strings.Contains(text, "Snow in Oslo.") {
		t.Fatal(text)
	}
	ops.Post("/ensembles/local/park")
	now := ops.Get("/").Text
	for _, want := range []string{"Parked local.", "parked by ops at the console", "Revive local"} {
		if !strings.Contains(now, want) {
			t.Errorf("the page lacks %q:\n%s", want, now)
		}
	}
	if strings.Contains(s.Login(t, consolestage.Ben).Get("/").Text, "parked by") {
		t.Error("a reader sees the error of a server")
	}
	if text := calls(); strings.Contains(text, "Snow in Oslo.") || !strings.Contains(text, "parked by ops at the console") {
		t.Errorf("a call of a parked server:\n%s", text)
	}
	ops.Post("/ensembles/local/connect") // of a page from before
	if now := ops.Get("/").Text; !strings.Contains(now, "local is parked: revive it first") || !strings.Contains(now, "Revive local") {
		t.Errorf("another button revives it:\n%s", now)
	}
	ops.Post("/ensembles/local/revive")
	if text := calls(); !strings.Contains(text, "Snow in Oslo.") {
		t.Errorf("a call after the revival:\n%s", text)
	}
}

// A message has a link to its trace, and says if another model wrote it; the stream says the
// same.
func TestTraceAndModel(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Trace: "https://traces.example/{trace_id}?of={conversation_id}"})
	head := func(id string) canister.Head { return canister.Head{ID: id} }
	traced := head("b")
	traced.Metadata = canister.Fields{"io.github.consort-go/trace": json.RawMessage(`"0123456789abcdef0123456789abcdef"`)}
	stored(t, s.Store, "two models", "owner-ada", canister.User{Head: head("u"), Content: canister.Texts("One?")},
		canister.Assistant{Head: head("a"), Model: "small", Content: canister.Texts("1"), Finish: canister.FinishStop},
		canister.User{Head: head("v"), Content: canister.Texts("Two?")},
		canister.Assistant{Head: traced, Model: "large", Content: canister.Texts("2"), Finish: canister.FinishStop})
	ada := s.Login(t, consolestage.Ada)
	page := ada.Get("/conversations/two%20models").Text
	for want, n := range map[string]int{
		`href="https://traces.example/0123456789abcdef0123456789abcdef?of=two+models"`: 1, "the model changed: before, it was small": 1, ">trace<": 1,
	} {
		if strings.Count(page, want) != n {
			t.Errorf("the page has %q not %d times:\n%s", want, n, page)
		}
	}
	response := ada.Open(http.MethodGet, "/conversations/two%20models/live?after=3", nil, "Accept", "text/event-stream")
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `"c4"`) {
			if !strings.Contains(lines.Text(), "before, it was small") {
				t.Errorf("the stream has %s", lines.Text())
			}
			return
		}
	}
	t.Error("the stream ends")
}

// A search that takes too long stops, says how far it came, and a link continues it.
func TestSearchFurther(t *testing.T) {
	store := history.NewMemory()
	for i := range 700 {
		said := "often"
		if i == 0 {
			said = "seldom"
		}
		stored(t, store, fmt.Sprintf("c%03d", i), "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts(said)})
	}
	ops := consolestage.Start(t, consolestage.Options{Store: store, Patience: time.Nanosecond}).Login(t, consolestage.Ops)
	path, pages := "/conversations?q=seldom", 0
	for ; pages < 20; pages++ {
		page := ops.Get(path).Text
		if strings.Contains(page, "/conversations/c000") {
			break
		}
		_, rest, found := strings.Cut(page, `href="/console/conversations?`)
		if !found || !strings.Contains(page, "Search further") {
			t.Fatalf("a search that did not end has no link:\n%s", page)
		}
		query, _, _ := strings.Cut(rest, `"`)
		path = "/conversations?" + strings.ReplaceAll(query, "&amp;", "&")
	}
	if pages == 0 || pages == 20 {
		t.Errorf("it is found on page %d", pages)
	}
}
