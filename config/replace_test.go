// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// parsed reads a configuration that must be right.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("consort.toml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// While a server that has changed is not connected, the former one takes the calls, also after
// further changes of the configuration.
func TestServersThatAreStillOffered(t *testing.T) {
	const text = "[mcp.x]\ncommand = [\"true\"]\n[serve]\nhttp = \"127.0.0.1:0\"\n"
	first, err := config.Assemble(parsed(t, text), &config.AssembleOptions{Replaceable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Close(context.Background()) })
	offered, newest := first.Ensembles[0], first
	address, ok := newest.AddressOf(offered)
	if !ok {
		t.Fatal("the first server has no address")
	}
	for i := range 3 {
		changed := strings.Replace(text, "[serve]", fmt.Sprintf("deny = [\"x\"]\n[mcp.other]\ncommand = [\"true\", \"%d\"]\n[serve]", i), 1)
		if newest, err = config.Assemble(parsed(t, changed), &config.AssembleOptions{Replaceable: true, Previous: newest}); err != nil {
			t.Fatal(err)
		}
		if got, ok := newest.AddressOf(offered); got != address || !ok {
			t.Errorf("after %d changes: %q, %v", i+1, got, ok)
		}
	}
	if err := newest.Roster.Replace(newest.Ensembles...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if newest, err = config.Assemble(parsed(t, text), &config.AssembleOptions{Replaceable: true, Previous: newest}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := newest.AddressOf(offered); ok {
		t.Error("a server that is gone has an address")
	}
}

// The former servers that are remembered do not grow in number with each reload.
func TestFormerServersAreRememberedOnce(t *testing.T) {
	const text = "[mcp.x]\ncommand = [\"true\"]\n"
	newest, err := config.Assemble(parsed(t, text), &config.AssembleOptions{Replaceable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { newest.Close(context.Background()) })
	for i := range 3 {
		if newest, err = config.Assemble(parsed(t, text), &config.AssembleOptions{Replaceable: true, Previous: newest}); err != nil {
			t.Fatal(err)
		}
		if n := newest.Former(); n != 1 {
			t.Errorf("after %d reloads, %d former servers are remembered", i+1, n)
		}
	}
}

// An assembly that replaces another has the ensembles of the servers that have not
// changed, wherever they stand in the file, and redacts the secrets of both.
func TestAssemblePrevious(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	first, err := config.Assemble(parsed(t, `
tools.resources = true
[mcp.same]
command = ["true", "x"]
environment = {API_TOKEN = "token-of-the-same"}
[mcp.changed]
command = ["true"]
[mcp.removed]
command = ["true"]
[serve]
http = "127.0.0.1:0"
token = "the-first-token-0123"
`), &config.AssembleOptions{Replaceable: true, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := first.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	next := `
# a line more
tools.resources = true
[mcp.changed]
command = ["true"]
deny = ["x"]
[mcp.added]
command = ["true"]
[mcp.same]
environment = {API_TOKEN = "token-of-the-same"}
command = ["true", "x"]
[serve]
http = "127.0.0.1:0"
token = "the-second-token-0123"
`
	second, err := config.Assemble(parsed(t, next), &config.AssembleOptions{Replaceable: true, Previous: first})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*ensemble.Ensemble{}
	for _, e := range first.Ensembles {
		byName[e.Name()] = e
	}
	var names []string
	for _, e := range second.Ensembles {
		same := e == byName[e.Name()]
		if want := e.Name() == "same"; same != want {
			t.Errorf("%s is the same: %v", e.Name(), same)
		}
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "added changed same resources" {
		t.Errorf("the ensembles are %s", got)
	}
	if second.Roster != first.Roster || second.Serve.Token != "the-second-token-0123" {
		t.Errorf("the roster is the same: %v; the token is %q", second.Roster == first.Roster, second.Serve.Token)
	}
	for _, a := range []*config.Assembly{first, second} {
		a.Logger.Info("the-first-token-0123 the-second-token-0123")
		if got := a.Redact("the-first-token-0123 the-second-token-0123"); got != "[secret] [secret]" {
			t.Errorf("redacted: %s", got)
		}
	}
	for _, entry := range seen.All() {
		if entry.Message != "[secret] [secret]" {
			t.Errorf("the log has %q", entry.Message)
		}
	}
	if _, err := config.Assemble(parsed(t, strings.Replace(next, `["true"]`, `["true"]`+"\npin = \"/no/such/folder/pins\"", 1)),
		&config.AssembleOptions{Previous: second}); err != nil && !strings.Contains(err.Error(), "consort.toml:") {
		t.Errorf("an error without a line: %v", err)
	}
	third, err := config.Assemble(parsed(t, next), &config.AssembleOptions{Previous: second})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range third.Ensembles {
		if e != second.Ensembles[i] {
			t.Errorf("%s is another one without a change", e.Name())
		}
	}
}
