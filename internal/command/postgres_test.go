// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// onServer makes a database and returns the table that keeps conversations there,
// the variable that says where it is, and the store.
func onServer(t *testing.T) (table string, r run, store history.Store) {
	t.Helper()
	dsn := pgtest.DSN(t)
	opened, err := postgres.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return "[history]\nstore = \"postgres\"\ndsn = \"env:TEST_DATABASE\"\nkeep = \"1h\"\n", run{env: []string{"TEST_DATABASE=" + dsn}}, opened
}

// TestConversationsOnAServer: every command that keeps conversations, or looks
// after them, does so on a PostgreSQL server.
func TestConversationsOnAServer(t *testing.T) {
	t.Parallel()
	table, r, store := onServer(t)
	path := file(t, model(t, expects("I am Ada", "Hello."), expects("Who am I", "Ada."), says("", calls("nobody__none", "{}")),
		openaiserver.Step{Reply: openaiserver.Message{Text: "Bye."}}),
		table, "[conversation]\nexchanges = 1\n")
	does := func(want exit.Status, args ...string) outcome {
		t.Helper()
		return r.consort(t, append(args, "--config", path)...).expect(t, want)
	}
	does(exit.Done, "check", "--offline")
	does(exit.Done, "run", "--conversation", "ada", "I am Ada.")
	r.stdin = "Who am I?\n"
	contains(t, "the answer", does(exit.Done, "chat", "--continue").stdout, "Ada.")
	r.stdin = ""
	does(exit.Limit, "run", "--conversation", "ada", "Go.")
	contains(t, "the answer", does(exit.Limit, "resume", "ada").stderr, "limit of exchanges with the model, which is 1")
	does(exit.Done, "history", "rename", "ada", "A title")
	does(exit.Done, "history", "tag", "ada", "kept")
	does(exit.Done, "history", "fork", "ada", "--at", "2", "--id", "copy")
	for args, want := range map[string]string{"list": "copy ada", "list --tag kept": "copy ada", "list --open": "ada", "search who": "ada", "prune": ""} {
		if got := listed(t, does(exit.Done, strings.Fields("history "+args+" --json")...)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	contains(t, "the conversation", does(exit.Done, "history", "show", "ada").stdout, "A title", "#kept", "1 user", "Hello.")
	bundle := filepath.Join(t.TempDir(), "all.jsonl")
	does(exit.Done, "history", "export", "--all", "-o", bundle)
	does(exit.Done, "history", "delete", "ada")
	if o := does(exit.Usage, "history", "import", bundle); o.stdout != "ada\n" {
		t.Errorf("%q", o.stdout)
	}
	if infos := all(t, store); len(infos) != 2 || infos[0].ID != "ada" || infos[0].Title != "A title" {
		t.Errorf("%+v", infos)
	}
	if got := listed(t, does(exit.Done, "history", "prune", "--keep", "1ns", "--open", "--json")); got != "ada copy" && got != "copy ada" {
		t.Errorf("pruned: %q", got)
	}
	// A file in its place.
	does(exit.Done, "history", "list", "--history", filepath.Join(t.TempDir(), "mine.db"))
}

// TestTheServerOfConversationsIsNotTold: neither where it is nor its password,
// whatever goes wrong. The exit status says whether a restart may help.
func TestTheServerOfConversationsIsNotTold(t *testing.T) {
	t.Parallel()
	table, r, _ := onServer(t)
	right, err := url.Parse(strings.TrimPrefix(r.env[0], "TEST_DATABASE="))
	if err != nil {
		t.Fatal(err)
	}
	wrong := *right
	wrong.User = url.UserPassword("nobody", "hunter-4711")
	for name, test := range map[string]struct {
		dsn    string
		status exit.Status
	}{
		"refused":   {wrong.String(), exit.Usage},
		"nobody":    {"postgres://me:hunter-4711@127.0.0.1:1/talks", exit.Failed},
		"no DSN":    {"postgres://me:hunter-4711@127.0.0.1:nonsense/talks", exit.Usage},
		"pairs":     {"host=127.0.0.1 port=1 password='hunter-4711' user=me", exit.Failed},
		"unfounded": {"hunter-4711", exit.Usage},
	} {
		path := file(t, model(t), table)
		for _, args := range []string{"history list", "check --offline", "run hi --log-level debug", "serve --http 127.0.0.1:0 --converse"} {
			status := test.status
			if strings.HasPrefix(args, "check") {
				status = exit.Usage // it is about the configuration
			}
			o := run{env: []string{"TEST_DATABASE=" + test.dsn}}.consort(t, append(strings.Fields(args), "--config", path)...).expect(t, status)
			lacks(t, name+": "+args, o.stdout+o.stderr, "hunter", test.dsn)
			contains(t, name+": "+args, o.stdout+o.stderr, "history.dsn")
		}
	}
}
