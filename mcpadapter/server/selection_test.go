// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shop is a server in front of two ensembles: open, of which the client guest sees a part,
// and vault, of which it sees nothing.
type shop struct {
	*server.Server
	open, vault *ensembletest.Source
	roster      *ensemble.Roster
	asked       atomic.Int64 // how often the selection of the guest was asked
	used        atomic.Int64 // how often something hidden ran
}

// openShop opens a shop. Without stock, what the guest does not see does not exist.
func openShop(t *testing.T, stocked bool, change func(*server.Options)) *shop {
	t.Helper()
	s := &shop{open: ensembletest.NewSource(), vault: ensembletest.NewSource()}
	s.stock(t, stocked, false)
	ensembles := []*ensemble.Ensemble{ensemble.New("open", s.open, nil)}
	if stocked {
		ensembles = []*ensemble.Ensemble{ensemble.New("vault", s.vault, nil), ensembles[0]}
	}
	s.roster = mcptest.Roster(t, ensembles...)
	if err := s.roster.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	guest := s.roster.Select(func(item ensemble.Item) bool {
		s.asked.Add(1)
		return item.Ensemble == "open" && !strings.Contains(item.Name, "secret")
	})
	options := &server.Options{
		Tokens: []server.BearerToken{{Token: "token-of-the-guest", Name: "guest"}, {Token: "token-of-the-owner", Name: "owner"}},
		Select: func(ctx context.Context) *ensemble.Selection { return s.chosen(ctx, guest) },
	}
	if stocked {
		options.Tools = []invoker.Invoker{s.tool(t, "secret_own", true)}
	}
	if change != nil {
		change(options)
	}
	s.Server = server.New(s.roster, options)
	t.Cleanup(func() {
		if err := s.Server.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// isOwner marks the trusted value by which the owner is known.
var isOwner = invoker.NewTrusted[bool]("owner")

func (s *shop) chosen(ctx context.Context, guest *ensemble.Selection) *ensemble.Selection {
	if owner, _ := isOwner.From(ctx); owner {
		return nil
	}
	return guest
}

// tool makes a tool with an argument that is also sent in a header.
func (s *shop) tool(t *testing.T, name string, hidden bool) invoker.Invoker {
	return rawTool(t, invoker.Definition{
		Name: name, Description: name, InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		if hidden {
			s.used.Add(1)
		}
		return invoker.Output{Content: canister.Texts(name)}, nil
	})
}

// library returns the resources and prompts with these names.
func (s *shop) library(names ...string) (l local.Library) {
	l.Updates = new(local.Updates)
	use := func(name string) {
		if strings.Contains(name, "secret") {
			s.used.Add(1)
		}
	}
	for _, name := range names {
		resource := ensembletest.TextResource("note:"+name, name)
		read := resource.Read
		resource.Read = func(ctx context.Context) ([]canister.ResourceContent, error) { use(name); return read(ctx) }
		l.Resources = append(l.Resources, resource)
		l.Templates = append(l.Templates, local.Template{
			Template: ensemble.Template{URI: "page:" + name + "/{id}", Name: name},
			Read: func(_ context.Context, uri string, _ map[string]string) ([]canister.ResourceContent, error) {
				use(uri)
				return []canister.ResourceContent{{URI: uri, Text: name}}, nil
			},
			Complete: func(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
				use(name)
				return &ensemble.Completion{Values: []string{"plain", "secrets", "a%73ecret"}, Total: 3}, nil
			},
		})
		l.Prompts = append(l.Prompts, local.Prompt{
			Prompt: ensemble.Prompt{Name: name, Arguments: []ensemble.PromptArgument{{Name: "x"}}},
			Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
				use(name)
				return &ensemble.Messages{Messages: []ensemble.PromptMessage{{Role: "user", Content: canister.Texts(name)}}}, nil
			},
			Complete: func(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
				use(name)
				return &ensemble.Completion{Values: []string{name}}, nil
			},
		})
	}
	return l
}

// stock sets what the ensembles offer; more offers an item more of each that is hidden.
func (s *shop) stock(t *testing.T, stocked, more bool) {
	tools, names := []invoker.Invoker{s.tool(t, "plain", false)}, []string{"plain"}
	if stocked {
		tools, names = append(tools, s.tool(t, "secret", true)), append(names, "secret")
	}
	if more {
		tools, names = append(tools, s.tool(t, "more_secret", true)), append(names, "more_secret")
	}
	s.open.SetTools(tools...)
	s.open.SetLibrary(s.library(names...))
	s.vault.SetTools(s.tool(t, "secret", true), s.tool(t, "plain", true))
	s.vault.SetLibrary(s.library("secret_vault"))
}

// requests are requests about an item, which are sent with different names.
var requests = []struct{ method, name, params string }{
	{"tools/call", "open__%s", `"name":"open__%s","arguments":{"region":"eu"}`},
	{"tools/call", "vault__%s", `"name":"vault__%s","arguments":{}`},
	{"tools/call", "%s_own", `"name":"%s_own","arguments":{}`},
	{"resources/read", "note:%s", `"uri":"note:%s"`},
	{"resources/read", "note:%s_vault", `"uri":"note:%s_vault"`},
	{"resources/read", "note:x/../%s", `"uri":"note:x/../%s"`},
	{"resources/read", "page:plain/%s", `"uri":"page:plain/%s"`},
	{"resources/read", "page:%s/1", `"uri":"page:%s/1"`},
	{"resources/subscribe", "", `"uri":"note:%s"`},
	{"resources/subscribe", "", `"uri":"note:%s_vault"`},
	{"prompts/get", "open__%s", `"name":"open__%s","arguments":{"x":"y"}`},
	{"prompts/get", "vault__%s_vault", `"name":"vault__%s_vault"`},
	{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"open__%s"},"argument":{"name":"x","value":""}`},
	{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"vault__%s_vault"},"argument":{"name":"x","value":""}`},
	{"completion/complete", "", `"ref":{"type":"ref/resource","uri":"page:%s/{id}"},"argument":{"name":"id","value":""}`},
	{"completion/complete", "", `"ref":{"type":"ref/resource","uri":"page:%s_vault/{id}"},"argument":{"name":"id","value":""}`},
}

// found are requests of clients that find tools by words.
var found = []struct{ method, name, params string }{
	{"tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"open__%s","arguments":{"region":"eu"}}`},
	{"tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"vault__%s","arguments":{}}`},
	{"tools/call", "call_tool", `"name":"call_tool","arguments":{"name":"%s_own"}`},
}

// searches are requests of such clients that are sent as they are.
var searches = []struct{ method, params string }{
	{"tools/call", `"name":"find_tools","arguments":{"query":"secret vault"}`},
	{"tools/call", `"name":"find_tools","arguments":{"query":"plain region","limit":20}`},
	{"tools/call", `"name":"find_tools","arguments":{"query":"vault__plain"}`},
}

// lists are requests that are sent as they are.
var lists = []struct{ method, params string }{
	{"tools/list", ""}, {"resources/list", ""}, {"resources/templates/list", ""}, {"prompts/list", ""}, {"server/discover", ""},
	{"completion/complete", `"ref":{"type":"ref/resource","uri":"page:plain/{id}"},"argument":{"name":"id","value":""}`},
	{"resources/read", `"uri":"note:plain"`},
}

// send sends a request as the guest, with and without a session, and returns the answer.
func (s *shop) send(t *testing.T, url, session, method, name, params string) string {
	t.Helper()
	header := http.Header{
		"Authorization": {"Bearer token-of-the-guest"}, "Mcp-Protocol-Version": {"2025-11-25"}, "Mcp-Name": {name},
		"Mcp-Session-Id": {session},
	}
	if session == "" {
		header.Del("Mcp-Session-Id")
		header.Set("Mcp-Protocol-Version", "2026-07-28")
		params = strings.TrimPrefix(params+","+rawMeta(""), ",")
	}
	status, answer := post(t, url, method, params, header)
	return fmt.Sprint(status, " ", answer)
}

// session begins a session as the guest.
func session(t *testing.T, url string) string {
	t.Helper()
	request, _ := http.NewRequestWithContext(mcptest.Within(t), http.MethodPost, url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	request.Header = http.Header{
		"Authorization": {"Bearer token-of-the-guest"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text := bodyOf(response); strings.Contains(text, "vault") || strings.Contains(text, "secret") {
		t.Errorf("the handshake says %s", text)
	}
	return response.Header.Get("Mcp-Session-Id")
}

// What a client may not use is answered like what does not exist: byte for byte what a
// server without it answers, and after the same number of decisions as for any other
// unknown name.
func TestHiddenIsUnknown(t *testing.T) {
	t.Run("listed", func(t *testing.T) { hiddenIsUnknown(t, false) })
	t.Run("found", func(t *testing.T) { hiddenIsUnknown(t, true) })
}

func hiddenIsUnknown(t *testing.T, finds bool) {
	lists, requests, change := lists, requests, func(o *server.Options) {}
	if finds {
		lists, requests = append(searches, lists...), append(found, requests...)
		change = func(o *server.Options) {
			o.Finds, o.Pinned = func(context.Context, string) bool { return true }, []string{"*__secret"}
		}
	}
	stocked, empty := openShop(t, true, change), openShop(t, false, change)
	here, there := httptest.NewServer(stocked.Handler()), httptest.NewServer(empty.Handler())
	defer here.Close()
	defer there.Close()
	sessions := map[*shop]string{stocked: session(t, here.URL), empty: session(t, there.URL)}
	for _, modern := range []bool{true, false} {
		ask := func(s *shop, url, method, name, params string) string {
			if modern {
				return s.send(t, url, "", method, name, params)
			}
			return s.send(t, url, sessions[s], method, name, params)
		}
		for _, r := range lists {
			if r.method == "server/discover" && !modern {
				continue
			}
			name := strings.TrimSuffix(strings.TrimPrefix(r.params, `"uri":"`), `"`)
			if r.method == "tools/call" {
				name = "find_tools"
			}
			has, hasNot := ask(stocked, here.URL, r.method, name, r.params), ask(empty, there.URL, r.method, name, r.params)
			if has != hasNot || strings.Contains(has, "secret") || !strings.HasPrefix(has, "200 ") {
				t.Errorf("modern=%v %s:\n%s\n%s", modern, r.method, has, hasNot)
			}
		}
		for _, r := range requests {
			if modern && r.method == "resources/subscribe" {
				continue // of older protocols
			}
			with := func(name string) (string, string) {
				if !strings.Contains(r.name, "%s") {
					return "", fmt.Sprintf(r.params, name)
				}
				return fmt.Sprintf(r.name, name), fmt.Sprintf(r.params, name)
			}
			name, params := with("secret")
			has, hasNot := ask(stocked, here.URL, r.method, name, params), ask(empty, there.URL, r.method, name, params)
			if has != hasNot || !strings.Contains(has, `"error"`) {
				t.Errorf("modern=%v %s %s:\n%s\n%s", modern, r.method, params, has, hasNot)
			}
			stocked.asked.Store(0)
			ask(stocked, here.URL, r.method, name, params)
			forHidden := stocked.asked.Swap(0)
			name, params = with("secrets")
			ask(stocked, here.URL, r.method, name, params)
			if forUnknown := stocked.asked.Load(); forHidden != forUnknown {
				t.Errorf("modern=%v %s %s: %d decisions, and %d for an unknown name", modern, r.method, params, forHidden, forUnknown)
			}
		}
	}
	if n := stocked.used.Load(); n != 0 {
		t.Errorf("%d times something hidden was used", n)
	}
}

// heard counts the notifications of a client.
type heard struct {
	tools, resources, prompts chan struct{}
	updated                   chan string
}

func (h *heard) client() *mcp.Client {
	h.tools, h.resources, h.prompts = make(chan struct{}, 100), make(chan struct{}, 100), make(chan struct{}, 100)
	h.updated = make(chan string, 100)
	return mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { h.tools <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { h.resources <- struct{}{} },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { h.prompts <- struct{}{} },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			h.updated <- r.Params.URI
		},
	})
}

// pairOf connects the guest and the owner, who have listed everything.
func pairOf(t *testing.T, s *shop, protocol string) (guest, owner *heard, sessions [2]*mcp.ClientSession) {
	t.Helper()
	guest, owner = new(heard), new(heard)
	for i, h := range []*heard{guest, owner} {
		srv := s.Server
		ctx, stop := context.WithCancel(t.Context())
		if i == 1 {
			ctx = invoker.WithTrusted(ctx, isOwner.Value(true))
		}
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx, toServer, fromServer) }()
		client, listens := h.client(), make(chan struct{}, 1)
		client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "notifications/subscriptions/acknowledged" {
					listens <- struct{}{}
				}
				return next(ctx, method, req)
			}
		})
		sessions[i] = connectClient(t, client, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, protocol)
		t.Cleanup(func() {
			_ = sessions[i].Close()
			stop()
			<-served
		})
		if protocol >= "2026-07-28" { // before that, it listens from the beginning
			mcptest.Await(t, "the acknowledgement", listens)
		}
		if _, err := sessions[i].ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions[i].ListResources(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions[i].ListPrompts(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return guest, owner, sessions
}

// A change of what is hidden reaches only clients that see it.
func TestHiddenChangesAreNotTold(t *testing.T) {
	s := openShop(t, true, nil)
	guest, owner, sessions := pairOf(t, s, "2025-11-25")
	for i, uris := range [][]string{{"note:plain"}, {"note:plain", "note:secret", "note:secret_vault"}} {
		for _, uri := range uris {
			if err := sessions[i].Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.stock(t, true, true)
	mcptest.Await(t, "the owner's tools", owner.tools)
	mcptest.Await(t, "the owner's resources", owner.resources)
	mcptest.Await(t, "the owner's prompts", owner.prompts)
	s.vault.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "note:secret_vault"})
	s.open.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "note:secret"})
	for range 2 {
		mcptest.Await(t, "the owner's updates", owner.updated)
	}
	s.open.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "note:plain"})
	if uri := mcptest.Await(t, "an update", guest.updated); uri != "note:plain" || len(guest.updated) != 0 {
		t.Errorf("the guest hears of %s, and %d more", uri, len(guest.updated))
	}
	s.open.SetTools(s.tool(t, "plain", false), s.tool(t, "plain_too", false))
	mcptest.Await(t, "the guest's tools", guest.tools)
	if len(guest.resources)+len(guest.prompts)+len(guest.tools) != 0 {
		t.Errorf("the guest hears of %d resources, %d prompts, %d tools more", len(guest.resources), len(guest.prompts), len(guest.tools))
	}
	s.open.SetLibrary(s.library("plain", "plain_too"))
	mcptest.Await(t, "the guest's resources", guest.resources)
	mcptest.Await(t, "the guest's prompts", guest.prompts)

	// What a client has subscribed to, and may not see any longer.
	nothing := s.roster.Select(func(ensemble.Item) bool { return false })
	s.SetAccess(&server.Options{Select: func(ctx context.Context) *ensemble.Selection { return s.chosen(ctx, nothing) }})
	for range 3 {
		s.open.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "note:plain"})
		mcptest.Await(t, "the owner's update", owner.updated)
	}
	if len(guest.updated) != 0 {
		t.Errorf("the guest hears of %s, which it may not see any longer", <-guest.updated)
	}
}

// Other rights hold at once, for sessions that are open: what becomes hidden disappears,
// the client is told, and a call that runs finishes.
func TestSelectionChanges(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			s := openShop(t, true, nil)
			guest, owner, sessions := pairOf(t, s, protocol)
			gate := ensembletest.NewGate("plain", false)
			s.open.SetTools(gate)
			mcptest.Await(t, "the new tool", guest.tools)
			mcptest.Await(t, "the new tool", owner.tools)
			answered := make(chan error, 1)
			go func() {
				_, err := sessions[0].CallTool(context.Background(), &mcp.CallToolParams{Name: "open__plain"})
				answered <- err
			}()
			<-gate.Begun
			nothing := s.roster.Select(func(ensemble.Item) bool { return false })
			s.SetAccess(&server.Options{Select: func(ctx context.Context) *ensemble.Selection { return s.chosen(ctx, nothing) }})
			if tools, err := sessions[0].ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 0 {
				t.Errorf("the guest sees %v, %v", tools, err)
			}
			if _, err := sessions[0].CallTool(t.Context(), &mcp.CallToolParams{Name: "open__plain"}); err == nil ||
				!strings.Contains(err.Error(), `unknown tool "open__plain"`) {
				t.Errorf("a hidden tool: %v", err)
			}
			gate.Release("done")
			if err := mcptest.Await(t, "the call", answered); err != nil {
				t.Errorf("the call did not finish: %v", err)
			}
			mcptest.Await(t, "the guest's tools", guest.tools)
			mcptest.Await(t, "the guest's resources", guest.resources)
			mcptest.Await(t, "the guest's prompts", guest.prompts)
			if len(owner.tools) != 0 {
				t.Error("the owner is told, for whom nothing has changed")
			}
		})
	}
}

// A function Select that panics shows nothing.
func TestSelectPanics(t *testing.T) {
	srv := newServer(t, &server.Options{Select: func(context.Context) *ensemble.Selection { panic("no rules") }}, adder(t))
	session := connectStdio(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), "")
	if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 0 {
		t.Errorf("the client sees %v, %v", tools, err)
	}
}

// A profile is served at its own path, to the callers for which it exists, and its sessions
// cannot be used at another path.
func TestProfiles(t *testing.T) {
	var none atomic.Bool
	s := openShop(t, true, func(o *server.Options) {
		choose := o.Select
		o.Profile = func(ctx context.Context, name string) (*ensemble.Selection, bool) {
			return choose(ctx), name == "part" && !none.Load()
		}
		o.Select = nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.ServeListener(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + listener.Addr().String() + "/mcp"
	whole, part := s.send(t, url, "", "tools/list", "", ""), s.send(t, url+"/part", "", "tools/list", "", "")
	if !strings.Contains(whole, `"vault__secret"`) || strings.Contains(part, "secret") || !strings.Contains(part, `"open__plain"`) {
		t.Errorf("the tools of all and of the profile:\n%s\n%s", whole, part)
	}
	for _, path := range []string{"/other", "/part/more", "/"} {
		if answer := s.send(t, url+path, "", "tools/list", "", ""); answer != "404 not found; MCP is served at /mcp\n" {
			t.Errorf("%s: %s", path, answer)
		}
	}
	if status, _ := post(t, url+"/other", "tools/list", rawMeta(""), nil); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	inPart := session(t, url+"/part")
	if answer := s.send(t, url+"/part", inPart, "tools/call", "", `"name":"open__plain"`); !strings.HasPrefix(answer, "200 ") {
		t.Errorf("in its profile: %s", answer)
	}
	if answer := s.send(t, url, inPart, "tools/call", "", `"name":"vault__secret"`); answer != "404 session not found\n" {
		t.Errorf("outside of its profile: %s", answer)
	}
	none.Store(true)
	if answer := s.send(t, url+"/part", inPart, "tools/list", "", ""); !strings.HasPrefix(answer, "404 ") {
		t.Errorf("a profile that is gone: %s", answer)
	}
}

// A call costs no decision: those about tools are made when the tools change.
func TestCallsCostNoDecisions(t *testing.T) {
	s := openShop(t, true, nil)
	listener := httptest.NewServer(s.Handler())
	defer listener.Close()
	s.send(t, listener.URL, "", "tools/list", "", "")
	s.asked.Store(0)
	for range 10 {
		for _, name := range []string{"open__plain", "open__secret"} {
			s.send(t, listener.URL, "", "tools/call", name, `"name":"`+name+`"`)
		}
	}
	if n := s.asked.Load(); n != 0 {
		t.Errorf("%d decisions", n)
	}
}
