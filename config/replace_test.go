// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
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
