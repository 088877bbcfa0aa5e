// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/loginrecords"
	"github.com/consort-go/consort/internal/records"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
)

// notes is an MCP server whose tool returns the token that it was called with.
func notes(t *testing.T) http.Handler {
	return mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, `{"content":[{"type":"text","text":"`+r.Header.Get("Authorization")+`"}]}`)
		}
		return m.Method == "tools/call"
	})
}

// assembleLogin assembles a configuration with a server that wants a login.
func assembleLogin(t *testing.T, text string, store login.Store) *ensemble.Ensemble {
	t.Helper()
	cfg, err := config.Parse("test.toml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	assembly, err := config.Assemble(cfg, &config.AssembleOptions{Logins: store, LoginHint: func(server string) string { return "type: login " + server }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := assembly.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	e, _ := assembly.Roster.Ensemble("notes")
	return e
}

// TestLoginWhileItRuns: without a login, the state says what to do; after a login
// somewhere else, the next use works; when the login ends, the state says so again.
func TestLoginWhileItRuns(t *testing.T) {
	s, resource := authserver.Start(t, authserver.Behaviour{Device: true}, notes(t))
	store := login.NewMemory()
	e := assembleLogin(t, "[mcp.notes]\nurl = \""+resource+"\"\n[mcp.notes.oauth]\n", store)
	for range 3 {
		_, err := e.Tools(t.Context())
		if !errors.Is(err, ensemble.ErrNeedsLogin) {
			t.Fatalf("without a login: %v", err)
		}
		now := e.Snapshot()
		if now.State != ensemble.NeedsLogin || !strings.Contains(now.LastError.Error(), "needs a login: you have not logged in yet; type: login notes") {
			t.Fatalf("the state is %q: %v", now.State, now.LastError)
		}
	}
	if n := s.Count("/.well-known/oauth-authorization-server"); n != 0 {
		t.Errorf("the authorization server was asked %d times", n)
	}
	elsewhere, err := login.New(&login.Options{URL: resource, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	enter := func(context.Context, login.Code) error { s.Enter(); return nil }
	if _, err := elsewhere.Login(t.Context(), &login.Prompt{Visit: visitNothing, Enter: enter}); err != nil {
		t.Fatal(err)
	}
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tool := tools[1]
	output, err := tool.Invoke(t.Context(), mcptest.RawCall(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", output.Content); strings.Contains(text, "access-token") || !strings.Contains(text, "Bearer") {
		t.Errorf("the tool's text is %q", text)
	}
	s.RevokeAll()
	_, err = tool.Invoke(t.Context(), mcptest.RawCall(`{}`))
	if failure := invoker.AsFailure(err); failure.Code != invoker.Unauthorized || !strings.Contains(failure.Message, "type: login notes") {
		t.Errorf("after the login has ended: %v", err)
	}
	if _, err := e.Tools(t.Context()); !errors.Is(err, ensemble.ErrNeedsLogin) {
		t.Errorf("listing after the login has ended: %v", err)
	}
	if state := e.Snapshot().State; state != ensemble.NeedsLogin {
		t.Errorf("the state is %q", state)
	}
}

// A login that is being renewed while the assembly is closed is stored in its conversation
// store.
func TestRenewalAtTheEnd(t *testing.T) {
	s, resource := authserver.Start(t, authserver.Behaviour{Device: true}, notes(t))
	text := "[history]\npath = \"" + filepath.Join(t.TempDir(), "talks.db") + "\"\n[mcp.notes]\nurl = \"" + resource + "\"\n[mcp.notes.oauth]\n"
	assemble := func() (*config.Assembly, login.Store) {
		cfg, err := config.Parse("test.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		var assembly *config.Assembly
		table := func(ctx context.Context) (records.Table, error) {
			store, err := assembly.History(ctx)
			if err != nil {
				return nil, err
			}
			return store.(interface{ Records() records.Table }).Records(), nil
		}
		store := loginrecords.New(table, func() ([]byte, error) { return make([]byte, 32), nil }, "")
		if assembly, err = config.Assemble(cfg, &config.AssembleOptions{Logins: store}); err != nil {
			t.Fatal(err)
		}
		return assembly, store
	}
	assembly, store := assemble()
	client, err := login.New(&login.Options{URL: resource, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	enter := func(context.Context, login.Code) error { s.Enter(); return nil }
	made, err := client.Login(t.Context(), &login.Prompt{Visit: visitNothing, Enter: enter})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	old := func(l *login.Login) (*login.Login, error) {
		l.Expiry = time.Now().Add(-time.Hour)
		return l, nil
	}
	if err := store.Update(t.Context(), made.Key, old); err != nil {
		t.Fatal(err)
	}
	renewing := make(chan struct{})
	s.Fail(func(r *http.Request) int {
		if r.URL.Path == "/token" {
			close(renewing)
			<-time.After(200 * time.Millisecond) // the server is slow
		}
		return 0
	})
	used := make(chan struct{})
	go func() {
		defer close(used)
		_, _ = assembly.Roster.Catalog(t.Context())
	}()
	<-renewing
	if err := assembly.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-used
	s.Fail(nil)
	assembly, _ = assemble()
	defer assembly.Close(t.Context())
	e, _ := assembly.Roster.Ensemble("notes")
	if _, err := e.Tools(t.Context()); err != nil { // a refresh token is valid once
		t.Error(err)
	}
}

func visitNothing(context.Context, string) error { return errors.New("there is no browser") }

// TestMachineLogin: a client with its own credentials needs nobody.
func TestMachineLogin(t *testing.T) {
	t.Setenv("NOTES_SECRET", "machine-secret")
	s, resource := authserver.Start(t, authserver.Behaviour{}, notes(t))
	e := assembleLogin(t, "[mcp.notes]\nurl = \""+resource+"\"\n[mcp.notes.oauth]\nissuer = \""+s.Issuer+"\"\ngrant = \"client_credentials\"\n"+
		"client_id = \"machine\"\nclient_secret = \"env:NOTES_SECRET\"\n", nil)
	tools, err := e.Tools(t.Context())
	if err != nil || len(tools) != 2 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

func TestLoginMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"[mcp.n]\ncommand = [\"x\"]\n[mcp.n.oauth]\n":                                                          `not for a server with transport = "stdio"`,
		"[mcp.n]\nurl = \"https://n.example/mcp\"\nheaders = {authorization = \"x\"}\n[mcp.n.oauth]\n":         "not both",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\nclient_secret = \"x\"\n":                     "client_id",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\ngrant = \"client_credentials\"\n":            "client_id",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\nclient_id = \"x\"\nclient_secret = \"x\"\n":  "issuer",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\ngrant = \"password\"\n":                      "client_credentials",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\nissuer = \"n\"\n":                            "a URL",
		"[mcp.n]\nurl = \"https://n.example/mcp\"\n[mcp.n.oauth]\nredirect_url = \"https://n.example/back\"\n": "of this machine",
	} {
		cfg, err := config.Parse("test.toml", []byte(text), nil)
		if err == nil {
			_, err = config.Assemble(cfg, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis answered with %v, not with %q", text, err, want)
		}
	}
}
