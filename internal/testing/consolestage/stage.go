// SPDX-License-Identifier: Apache-2.0

// Package consolestage serves a console over HTTP for tests, with a few people, an engine, a
// scripted model and a few tools.
package consolestage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
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
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/console"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// The tokens of the people: Ada answers, Ben reads, Aud audits, Ops operates, and Off has no access.
const (
	Aud = "token-of-aud-0123456789"
	Ada = "token-of-ada-0123456789"
	Ben = "token-of-ben-0123456789"
	Ops = "token-of-ops-0123456789"
	Off = "token-of-off-0123456789"
)

// Secret is the secret of the configuration.
const Secret = "swordfish-in-the-harbour"

// patience bounds the end of the parts.
const patience = 30 * time.Second

// Options choose the parts of a stage.
type Options struct {
	Store history.Store // default a new one in memory
	Tools []invoker.Invoker
	// Library has the resources and prompts of the server; the default is a few resources and a prompt.
	Library *local.Library
	Lines   []conversetest.Line // of the model
	Model   converse.Model      // default one that plays Lines
	Now     func() time.Time
	Budget  *budget.Policy
	Trace   string // the address of the page of a trace
	Logger  *zap.Logger
	// Patience bounds the parts of pages; default a minute, so that no page depends on the load of
	// the machine, and negative means the default of the console.
	Patience time.Duration
}

// Stage is a console over HTTP. Its parts end with the test.
type Stage struct {
	URL     string
	Console *console.Console
	Store   history.Store
	Engine  *engine.Local
	MCP     *server.Server
	Pins    *pins.File
	Audit   string // the file of records

	mu    sync.Mutex
	roles map[string]console.Role
}

// Tokens are the tokens of the people.
func Tokens() []server.BearerToken {
	var all []server.BearerToken
	for token, name := range map[string]string{Ada: "ada", Ben: "ben", Aud: "aud", Ops: "ops", Off: "off"} {
		all = append(all, server.BearerToken{Token: token, Name: name})
	}
	return all
}

var firstRoles = map[string]console.Role{"ada": console.Answer, "ben": console.Read, "aud": console.Audit, "ops": console.Operate}

// Start starts a stage.
func Start(t testing.TB, o Options) *Stage {
	t.Helper()
	s := &Stage{Store: o.Store, Audit: filepath.Join(t.TempDir(), "audit.jsonl"), roles: maps.Clone(firstRoles)}
	if s.Store == nil {
		s.Store = history.NewMemory()
	}
	if o.Library == nil {
		o.Library = material()
	}
	roster := s.roster(t, o)
	if o.Model == nil {
		o.Model = conversetest.NewScript(o.Lines...)
	}
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(o.Model, roster, &converse.Options{ID: id, Log: s.Store, Budget: o.Budget, Approve: approve, Ask: later}), nil
	}
	var err error
	if s.Engine, err = engine.NewLocal(s.Store, open, &engine.Options{Retries: -1}); err != nil {
		t.Fatal(err)
	}
	file, err := audit.OpenFile(s.Audit, nil)
	if err != nil {
		t.Fatal(err)
	}
	trail := audit.New(file, nil)
	s.MCP = server.New(roster, &server.Options{Tokens: Tokens(), Audit: trail})
	feed, secrets := httpapi.NewFeed(s.Engine, s.Store), redact.NewGrowing(Secret)
	s.Console = console.New(console.Options{
		Identify: s.MCP.Identify, Tokens: func() bool { return true }, Caller: s.caller,
		Store: s.Store, Engine: s.Engine, Active: s.Engine.Active, Feed: feed, Roster: roster, Audit: trail, Records: func() string { return s.Audit }, Now: o.Now,
		Begin: func(ctx context.Context, id string, said canister.User) error {
			return engine.Post(ctx, s.Store, open, id, said, time.Now())
		},
		Call: func(ctx context.Context, tool *ensemble.Tool, arguments json.RawMessage) (invoker.Output, error) {
			return tool.Invoke(ctx, &invoker.Call{Arguments: arguments})
		},
		TraceURL: func() string { return o.Trace },
		Patience: max(0, cmp.Or(o.Patience, time.Minute)),
		Budget:   func() *budget.Policy { return o.Budget },
		Logger:   o.Logger,
		Pins:     func() ([]*pins.File, error) { return []*pins.File{s.Pins}, nil },
		Reload:   func(context.Context) (string, error) { return "The configuration was read.", nil },
		Redact:   secrets.Text, RedactPart: secrets.Part,
	})
	web := httptest.NewServer(s.Console)
	s.URL = web.URL + console.Prefix
	t.Cleanup(func() { s.end(t, web, feed, roster, file) })
	return s
}

// end closes everything, and reports what cannot be closed.
func (s *Stage) end(t testing.TB, web *httptest.Server, feed *httpapi.Feed, roster *ensemble.Roster, trail io.Closer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.MCP.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	web.CloseClientConnections()
	web.Close()
	s.Console.Close()
	feed.Close()
	now, over := context.WithCancel(ctx)
	over()
	for _, err := range []error{s.Engine.Close(now), roster.Close(ctx), trail.Close()} {
		if err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// roster returns the tools, which are pinned.
func (s *Stage) roster(t testing.TB, o Options) *ensemble.Roster {
	t.Helper()
	var err error
	if s.Pins, err = pins.Open(filepath.Join(t.TempDir(), "pins.json")); err != nil {
		t.Fatal(err)
	}
	options := &ensemble.Options{Trust: ensemble.TrustAll, Screen: s.Pins.Screen("local", pins.Warn, nil)}
	roster, err := ensemble.NewRoster(ensemble.New("local", o.Library.Source(append(tools(t), o.Tools...)...), options))
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

type weatherQuery struct {
	City string `json:"city" jsonschema:"name of the city"`
	Days int    `json:"days,omitempty" jsonschema:"how many days ahead"`
}

type fileEdit struct {
	Path string `json:"path"`
	Old  string `json:"old_text"`
	New  string `json:"new_text"`
}

// tools returns a tool that only reads, one whose calls need an approval, and one that asks.
func tools(t testing.TB) []invoker.Invoker {
	t.Helper()
	weather, err := invoker.New("weather", "Report the weather in a city.", func(_ context.Context, q weatherQuery) (string, error) {
		if q.City == "Atlantis" {
			return "", invoker.Failf(invoker.NotFound, "There is no city of this name.")
		}
		return fmt.Sprintf("Snow in %s.", q.City), nil
	}, &invoker.Options{Hints: invoker.Hints{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	edit, err := invoker.New("edit_file", "Replace a text in a file.", func(_ context.Context, e fileEdit) (string, error) {
		return "replaced in " + e.Path, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask, err := invoker.New("book_seat", "Book a seat on a train.", func(ctx context.Context, _ struct{}) (string, error) {
		reply, err := invoker.CallFrom(ctx).Ask(ctx, &invoker.ElicitRequest{Server: "trains", Message: "Which seat?",
			Schema: json.RawMessage(`{"type":"object","properties":{"seat":{"type":"string","title":"Seat","enum":["window","aisle"]}},"required":["seat"]}`)})
		if err != nil {
			return "", err
		}
		return fmt.Sprint("booked: ", reply.Content["seat"]), nil
	}, &invoker.Options{Hints: invoker.Hints{Idempotent: true}})
	if err != nil {
		t.Fatal(err)
	}
	return []invoker.Invoker{weather, edit, ask}
}

// material returns a note, a picture, the forecasts of cities, and a prompt.
func material() *local.Library {
	return &local.Library{
		Resources: []local.Resource{{
			Resource: ensemble.Resource{URI: "note://packing", Name: "packing", Title: "Packing list", Description: "What to take along.", MIME: "text/markdown"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "# Packing\n\n- a warm coat"}}, nil
			},
		}, {
			Resource: ensemble.Resource{URI: "note://map.svg", Name: "map", Description: "The way to the harbour.", MIME: "image/svg+xml"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Blob: []byte("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")}}, nil
			},
		}},
		Templates: []local.Template{{
			Template: ensemble.Template{URI: "forecast://{city}", Name: "forecast", Description: "The forecast for a city."},
			Read: func(_ context.Context, _ string, variables map[string]string) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "Snow in " + variables["city"] + "."}}, nil
			},
		}},
		Prompts: []local.Prompt{{
			Prompt: ensemble.Prompt{Name: "greet", Title: "Greeting", Description: "Greet a guest.", Arguments: []ensemble.PromptArgument{
				{Name: "guest", Title: "Guest", Description: "Name of the guest.", Required: true}, {Name: "tone"}}},
			Get: func(_ context.Context, arguments map[string]string) (*ensemble.Messages, error) {
				return &ensemble.Messages{Description: "A greeting.", Messages: []ensemble.PromptMessage{
					{Role: "user", Content: canister.Texts("Greet " + arguments["guest"] + " in a " + cmp.Or(arguments["tone"], "warm") + " tone.")},
					{Role: "assistant", Content: []canister.Content{canister.ImageContent{MIME: "image/png", Data: []byte("12345")}}}}}, nil
			},
		}},
	}
}

// approve postpones the calls of edit_file.
func approve(_ context.Context, ask converse.Approval) (converse.Decision, error) {
	if ask.Tool == "edit_file" {
		return converse.Defer(time.Hour, ""), nil
	}
	return converse.Allow(), nil
}

// later postpones the questions of tools.
func later(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	return nil, converse.Later(time.Hour, "")
}

func (s *Stage) caller(ctx context.Context) (console.Caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := access.MeasuredFrom(ctx)
	return console.Caller{Name: name, Owner: "owner-" + name, Role: s.roles[name], Identity: name}, nil
}

// SetRole changes the role of a person, and checks the open streams.
func (s *Stage) SetRole(name string, role console.Role) {
	s.mu.Lock()
	s.roles[name] = role
	s.mu.Unlock()
	s.MCP.SetAccess(&server.Options{Tokens: Tokens()})
}

// Person is someone with a browser that runs no scripts.
type Person struct {
	t      testing.TB
	stage  *Stage
	Cookie string // with the session; empty before the login
	Form   string // the token of the forms
}

// Reply is a response with its body.
type Reply struct {
	*http.Response
	Text string
}

// Stranger returns a person who is not logged in.
func (s *Stage) Stranger(t testing.TB) *Person { return &Person{t: t, stage: s} }

var formToken = regexp.MustCompile(`name="form_token" value="([A-Z0-9]+)"`)

// Login returns a person who has logged in with a token. Of the stage it uses only the URL,
// which may be that of any console.
func (s *Stage) Login(t testing.TB, token string) *Person {
	t.Helper()
	p := s.Stranger(t)
	reply := p.Do(http.MethodPost, "/login", url.Values{"token": {token}})
	if reply.StatusCode != http.StatusSeeOther {
		t.Fatalf("login: %s\n%s", reply.Status, reply.Text)
	}
	p.Take(reply)
	return p
}

// Take takes the cookie of a response and reads the token of the forms.
func (p *Person) Take(reply Reply) {
	p.t.Helper()
	for _, cookie := range reply.Cookies() {
		p.Cookie = cookie.Name + "=" + cookie.Value
	}
	found := formToken.FindStringSubmatch(p.Get("/").Text)
	if found == nil {
		p.t.Fatal("the page has no form")
	}
	p.Form = found[1]
}

// Get loads a page, by its path below the prefix.
func (p *Person) Get(path string, headers ...string) Reply {
	p.t.Helper()
	return p.Do(http.MethodGet, path, nil, headers...)
}

// Post sends a form, with the token of the session.
func (p *Person) Post(path string, fields ...string) Reply {
	p.t.Helper()
	form := url.Values{"form_token": {p.Form}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return p.Do(http.MethodPost, path, form)
}

var waitPath = regexp.MustCompile(`action="/console(/waiting/[^"]+)"`)

// Allow allows the call that a conversation waits for.
func (p *Person) Allow(conversation string) {
	p.t.Helper()
	page := p.Get("/conversations/" + conversation)
	at := waitPath.FindStringSubmatch(page.Text)
	if at == nil {
		p.t.Fatalf("%s does not wait: %s", conversation, page.Text)
	}
	if reply := p.Post(at[1], "verdict", string(canister.VerdictAllow)); reply.StatusCode != http.StatusSeeOther {
		p.t.Fatalf("allow: %s\n%s", reply.Status, reply.Text)
	}
}

// Do sends a request and follows no redirect.
func (p *Person) Do(method, path string, form url.Values, headers ...string) Reply {
	p.t.Helper()
	response := p.Open(method, path, form, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return Reply{response, string(text)}
}

// Open is like Do, and leaves the body to the caller.
func (p *Person) Open(method, path string, form url.Values, headers ...string) *http.Response {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*patience)
	p.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, p.stage.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if p.Cookie != "" {
		request.Header.Set("Cookie", p.Cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}
