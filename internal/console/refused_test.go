// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/turncancel"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

var waitForm = regexp.MustCompile(`action="/console(/waiting/[^"]+)"`)

// answerAt returns the path of the form that answers the first wait of a page.
func answerAt(t *testing.T, page string) string {
	t.Helper()
	found := waitForm.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("nothing waits:\n%s", page)
	}
	return found[1]
}

// reserve is a tool that asks for several values.
func reserve(t *testing.T) invoker.Invoker {
	t.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{
		"count":{"type":"integer","title":"Seats"},"note":{"type":"string","default":"none"},
		"class":{"type":"string","enum":["first","second"],"default":"first"},"window":{"type":"boolean"}}}`)
	tool, err := invoker.New("reserve", "Reserve seats.", func(ctx context.Context, _ struct{}) (string, error) {
		reply, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Server: "trains", Message: "Which seats?", Schema: schema})
		if err != nil {
			return "", err
		}
		answer, err := json.Marshal(reply.Content)
		return "reserved: " + string(answer), err
	}, &invoker.Options{Hints: invoker.Hints{Idempotent: true}})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// has reports what a page lacks.
func has(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
}

// An answer that is refused is not lost: the page has the form again with what was typed, except secrets, and
// says what is wrong.
func TestRefusedAnswerStays(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{reserve(t)}, Lines: []conversetest.Line{
		{Calls: []conversetest.Call{{Name: "local__reserve", Arguments: `{}`}}}, {Text: "It is done."}}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "Which seats?")
	to := answerAt(t, ada.Get(path).Text)
	page := ada.Post(to, "verdict", "accept", "v-count", "two", "v-note", "near the door", "v-class", "second", "v-window", "false").Text
	has(t, page, "Seats: ", "is not a number", to, `value="two"`, `value="near the door"`, `<option value="second" selected="">`,
		`<option value="false" selected="">`)
	if page := ada.Post(to, "verdict", "accept", "v-count", "two", "v-note", "It is "+consolestage.Secret).Text; hasSecret(page) ||
		strings.Contains(page, "It is") {
		t.Errorf("the form has a secret, or a mask that would be sent:\n%s", page)
	}
	if page := ada.Get("/waiting").Text; strings.Contains(page, "near the door") || strings.Contains(page, "notice failed") {
		t.Errorf("the next page has it too:\n%s", page)
	}
	ada.Post(to, "verdict", "accept", "v-count", "2", "v-note", "", "v-class", "", "v-window", "")
	until(t, s, ada, path, "It is done.")
	has(t, ada.Get(path).Text, "reserved: {&#34;count&#34;:2}") // without the defaults that were removed, of a text and of a choice
	reply := ada.Post(to, "verdict", "accept", "v-count", "3")
	page = ada.Get("/waiting").Text
	if reply.StatusCode != http.StatusSeeOther || !strings.Contains(page, "the wait was answered already") {
		t.Errorf("an answer that comes late: %s\n%s", reply.Status, page)
	}
}

// Arguments that are not JSON stay in the form of the approval.
func TestRefusedArgumentsStay(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{
		{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: `{"path":"a.txt"}`}}}}})
	ada := s.Login(t, consolestage.Ada)
	to := answerAt(t, ada.Get(begun(t, s, ada, "May this call be made?")).Text)
	page := ada.Post(to, "verdict", "change", "arguments", `{"path": "a long name`).Text
	has(t, page, `{&#34;path&#34;: &#34;a long name</textarea>`, `<details open=""><summary>Allow with other arguments`,
		"must be one JSON object")
}

// A call that is refused because of its arguments keeps what was typed, and its form can be sent again: it has
// made no call.
func TestRefusedCallStays(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	form := formID(t, ada.Get("/tools/local__weather").Text)
	page := ada.Post("/tools/local__weather", "form", "fields", "form_id", form, "v-city", "Oslo", "v-days", "two").Text
	has(t, page, "INVALID_ARGUMENTS", `value="Oslo"`, `value="two"`)
	page = ada.Post("/tools/local__weather", "form", "fields", "form_id", form, "v-city", "Oslo", "v-days", "2").Text
	has(t, page, "Snow in Oslo.", `value="Oslo"`)
	page = ada.Post("/tools/local__weather", "arguments", `{"city": "Oslo`).Text
	has(t, page, "The arguments are not JSON", `{&#34;city&#34;: &#34;Oslo</textarea>`, `<details open=""><summary>Arguments as JSON`)
}

// The form that cancels is about the turn of its page: it does not end a later turn, and says if nothing was
// cancelled.
func TestCancelOfShownTurn(t *testing.T) {
	call := conversetest.Line{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: `{}`}}}
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{call, call}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "May this call be made?")
	shown := func() string {
		t.Helper()
		found := regexp.MustCompile(`name="shown" value="(\d+)"`).FindStringSubmatch(ada.Get(path).Text)
		if found == nil {
			t.Fatal("the form does not say which turn it cancels")
		}
		return found[1]
	}
	cancel := func(want string, fields ...string) {
		t.Helper()
		ada.Post(path+"/cancel", fields...)
		has(t, ada.Get(path).Text, want)
	}
	old := shown()
	cancel("does not say which turn")
	cancel("The turn was cancelled.", "shown", old)
	cancel("the turn is over already", "shown", old)
	ada.Post(path+"/send", "message", "Do it again.")
	until(t, s, ada, path, "May this call be made?")
	cancel("a message has begun another one", "shown", old)
	cancel("May this call be made?", "shown", old)
	cancel("The turn was cancelled.", "shown", shown())
	info, err := s.Store.Info(t.Context(), strings.TrimPrefix(path, "/conversations/"))
	if err != nil || info.Last != canister.KindAssistant {
		t.Errorf("%+v, %v", info, err)
	}
}

// bounded is an engine that keeps how much time a cancel may take.
type bounded struct {
	engine.Engine
	limit time.Duration
}

func (b *bounded) Cancel(ctx context.Context, id string) error {
	deadline, _ := ctx.Deadline()
	b.limit = time.Until(deadline)
	return b.Engine.Cancel(ctx, id)
}

// A turn whose functions ignore its end is cancelled too: its engine needs more time than other actions may take.
func TestCancelOfStubbornTurn(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: `{}`}}}}})
	local := &bounded{Engine: s.Engine}
	s.Console.Engine = local
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "May this call be made?")
	info, err := s.Store.Info(t.Context(), strings.TrimPrefix(path, "/conversations/"))
	if err != nil {
		t.Fatal(err)
	}
	ada.Post(path+"/cancel", "shown", strconv.Itoa(info.Length))
	has(t, ada.Get(path).Text, "The turn was cancelled.")
	if local.limit < turncancel.Limit/2 {
		t.Errorf("the cancel may take %v", local.limit)
	}
}

// The notice of an action is for the page that the person sees next, and not for one that the script of
// another tab fetches.
func TestNoticeIsNotForScripts(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	stored(t, s.Store, "plan", "owner-ada")
	ada := s.Login(t, consolestage.Ada)
	ada.Post("/conversations/plan/cancel", "shown", "2")
	if page := ada.Get("/", "X-Consort-Script", "1").Text; strings.Contains(page, "flash") {
		t.Errorf("the page of the script has it:\n%s", page)
	}
	has(t, ada.Get("/conversations/plan").Text, "the turn is over already")
}

// Where the console does not know what is worked on, it does not say that turns run.
func TestUnknownTurns(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}, {Text: "It goes on."}}})
	s.Console.Active = nil
	ada := s.Login(t, consolestage.Ada)
	fork := strings.TrimPrefix(ada.Post(begun(t, s, ada, "One.")+"/fork", "at", "1").Header.Get("Location"), "/console")
	page := ada.Get("/").Text
	has(t, page, "<h2>Not over</h2>", fork, "does not know which")
	if strings.Contains(page, "Running") {
		t.Errorf("the page says that it runs:\n%s", page)
	}
	has(t, ada.Get(fork).Text, "does not know whether", "Resume the turn")
	ada.Post(fork + "/resume")
	until(t, s, ada, fork, "It goes on.")
}

// A list of choices has a box for each, with its title. Each box that is checked reaches the tool as one value, with
// the commas in it.
func TestListOfChoices(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"stops":{"type":"array","title":"Stops","items":{"anyOf":[{"const":"Oslo, S","title":"Oslo Central"},{"const":"Hamar","title":"Hamar by the lake"},{"const":"Lund","title":"Lund"}]},"default":["Lund"]},
		"none":{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]},
		"day":{"type":"string","format":"date"}}}`)
	tool, err := invoker.New("route", "Choose a route.", func(ctx context.Context, _ struct{}) (string, error) {
		reply, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Server: "trains", Message: "Which route?", Schema: schema})
		if err != nil {
			return "", err
		}
		answer, err := json.Marshal(reply.Content)
		return "answer: " + string(answer), err
	}, &invoker.Options{Hints: invoker.Hints{Idempotent: true}})
	if err != nil {
		t.Fatal(err)
	}
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{tool}, Lines: []conversetest.Line{
		{Calls: []conversetest.Call{{Name: "local__route", Arguments: `{}`}}}, {Text: "It is done."}}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "Which route?")
	page := ada.Get(path).Text
	has(t, page, "Oslo Central", "Hamar by the lake", `value="Oslo, S"`, `value="Lund" checked=""`, `placeholder="2026-11-22"`)
	to, day := answerAt(t, page), "tomorrow"
	send := func() consolestage.Reply {
		return ada.Do(http.MethodPost, to, url.Values{"form_token": {ada.Form}, "verdict": {"accept"}, "v-stops": {"", "Oslo, S", "Hamar"}, "v-none": {""}, "v-day": {day}})
	}
	has(t, send().Text, "is not a date", `value="Oslo, S" checked=""`, `value="Hamar" checked=""`, `value="Lund"/>`, `value="tomorrow"`)
	day = "2026-12-01"
	send()
	until(t, s, ada, path, "It is done.")
	has(t, ada.Get(path).Text, "answer: {&#34;day&#34;:&#34;2026-12-01&#34;,&#34;stops&#34;:[&#34;Oslo, S&#34;,&#34;Hamar&#34;]}")
}

// hanging is a store that is read until the request ends.
type hanging struct {
	history.Store
	begun chan struct{}
	once  *sync.Once
}

func (h hanging) Info(ctx context.Context, id string) (history.Info, error) {
	if id == "kept" {
		return h.Store.Info(ctx, id)
	}
	h.once.Do(func() { close(h.begun) })
	<-ctx.Done()
	return history.Info{}, ctx.Err()
}

func (h hanging) List(ctx context.Context, _ history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		_, err := h.Info(ctx, "")
		yield(history.Info{}, err)
	}
}

func (h hanging) Read(ctx context.Context, _ string, _ int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		_, err := h.Info(ctx, "")
		yield(nil, err)
	}
}

// A page or an export whose token is withdrawn meanwhile is not an empty answer, and not one that lacks what
// could not be read.
func TestATokenIsWithdrawnBeforeTheAnswer(t *testing.T) {
	for _, path := range []string{"/", "/waiting", "/conversations", "/spend", "/spend.csv", "/conversations/plan", "/conversations/plan/raw", "/conversations/kept",
		"/conversations/kept/images/1/0"} {
		t.Run(path, func(t *testing.T) {
			s := consolestage.Start(t, consolestage.Options{})
			ada := s.Login(t, consolestage.Ada)
			stored(t, s.Store, "kept", "owner-ada")
			begun := make(chan struct{})
			s.Console.Store = hanging{s.Store, begun, &sync.Once{}}
			go func() {
				<-begun
				s.MCP.SetAccess(&server.Options{Tokens: []server.BearerToken{{Token: "another-token"}}})
			}()
			if reply := ada.Get(path); reply.StatusCode != http.StatusServiceUnavailable || !strings.Contains(reply.Text, "the token is not valid any longer") {
				t.Errorf("%s %q", reply.Status, reply.Text)
			}
		})
	}
}
