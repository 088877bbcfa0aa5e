// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/reload"
)

// A reload keeps the values of the keys that are read only at the start. Those of [serve] are
// kept as a whole.
func TestReloadKeepsWhatIsReadAtTheStart(t *testing.T) {
	parse := func(text string) *config.Config {
		cfg, err := config.Parse("consort.toml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	running := parse(`concurrent_starts = 1
public_variables = ["A"]
serve = {}
trusted = {user = "ada"}
audit = {file = "a.jsonl"}
history = {path = "a.db"}
log = {format = "json"}
logins = {scope = "a", store = "files"}
conversation = {identity = ["user"], spill = "a"}
`)
	loaded := parse(`concurrent_starts = 2
public_variables = ["B"]
trusted = {user = "ben"}
audit = {file = "b.jsonl"}
history = {path = "b.db"}
log = {format = "console"}
logins = {scope = "b", store = "history"}
conversation = {identity = ["name"], spill = "b"}
`)
	of := map[string]func(*config.Config) any{
		"audit":                 func(c *config.Config) any { return c.Audit },
		"concurrent_starts":     func(c *config.Config) any { return c.ConcurrentStarts },
		"conversation.identity": func(c *config.Config) any { return c.Conversation.Identity },
		"conversation.spill":    func(c *config.Config) any { return c.Conversation.Spill },
		"history":               func(c *config.Config) any { return c.History },
		"log.format":            func(c *config.Config) any { return c.Log.JSON },
		"logins.scope":          func(c *config.Config) any { return c.Logins.Scope },
		"logins.store":          func(c *config.Config) any { return c.Logins.Store },
		"public_variables":      func(c *config.Config) any { return c.PublicVariables },
		"trusted":               func(c *config.Config) any { return c.Trusted },
	}
	kept := withRunning(loaded, running)
	for _, key := range atStart {
		if strings.HasPrefix(key, "serve.") {
			continue
		}
		value := of[key]
		if value == nil || reflect.DeepEqual(value(loaded), value(running)) {
			t.Errorf("%s is not in this test", key)
		} else if !reflect.DeepEqual(value(kept), value(running)) {
			t.Errorf("%s is %v after a reload, and was %v", key, value(kept), value(running))
		}
	}
}

// A reload reports the first rule that asks, the first budget and the first client: their store and the console
// are opened at the start.
func TestReloadReportsWhatIsOpenedAtTheStart(t *testing.T) {
	asks := []serve.Rule{{Action: serve.Ask}}
	client, budget := []serve.Client{{Name: "ada", Token: values.Plain("0123456789abcdef")}}, []serve.Budget{{Calls: 1}}
	web := values.Plain("127.0.0.1:0")
	stored := &config.History{}
	for i, test := range []struct {
		running config.Config
		next    serve.Options
		want    []string
	}{
		{config.Config{Serve: &serve.Options{}}, serve.Options{}, nil},
		{config.Config{Serve: &serve.Options{}}, serve.Options{Rules: asks, Budgets: budget}, []string{"serve.budgets", "serve.rules"}},
		{config.Config{Serve: &serve.Options{}, History: stored}, serve.Options{Rules: asks, Budgets: budget}, nil},
		{config.Config{Serve: &serve.Options{HTTP: web}}, serve.Options{Clients: client}, []string{"serve.console"}},
		{config.Config{Serve: &serve.Options{HTTP: web, Clients: client}}, serve.Options{Clients: client}, nil},
		{config.Config{Serve: &serve.Options{}}, serve.Options{Clients: client}, nil},
	} {
		if got := beyondStart(&test.running, &test.next); !slices.Equal(got, test.want) {
			t.Errorf("%d: %v, want %v", i, got, test.want)
		}
	}
}

// A call_limit above all before needs a restart where the engine takes over conversations of other processes.
func TestReloadOfALongerCallLimit(t *testing.T) {
	const postgres, sqlite = "[history]\nstore = 'postgres'\ndsn = 'x'\n", "[history]\npath = 'x.db'\n"
	for i, test := range []struct {
		store, limit, engine string
		converse             bool
		want                 []string
	}{
		{store: postgres, limit: "1h", converse: true, want: []string{"mcp.jobs.call_limit"}},
		{store: postgres, limit: "19m", converse: true},
		{store: postgres, limit: "1h", converse: true, engine: Temporal},
		{store: postgres, limit: "1h"},
		{store: sqlite, limit: "1h", converse: true},
	} {
		path := filepath.Join(t.TempDir(), "consort.toml")
		read := func(limit string) (*reload.Files, *config.Config) {
			text := test.store + "[model]\nname = 'm'\nbase_url = 'http://x'\n[serve]\nhttp = '127.0.0.1:0'\nconverse = " + fmt.Sprint(test.converse) +
				"\n[mcp.jobs]\ncommand = ['x']\ncall_limit = '" + limit + "'\n" +
				"[mcp.short]\ncommand = ['x']\ncall_limit = '" + map[bool]string{true: "5m", false: "8m"}[limit == "20m"] + "'\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Parse(path, []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			return reload.Read(path, func(func(string) ([]byte, error)) {}), cfg
		}
		files, running := read("20m")
		r := &reloader{options: &Options{Config: running, Engine: test.engine, Reload: &Reload{Files: files}}, servers: &servers{}}
		files, loaded := read(test.limit)
		if got := r.restartKeys(files, withRunning(loaded, running)); !slices.Equal(got, test.want) {
			t.Errorf("%d: %v, want %v", i, got, test.want)
		}
	}
}

// The log keeps the level of the audit trail as long as the trail is in it.
func TestReloadKeepsTheLevelOfTheTrail(t *testing.T) {
	for _, test := range []struct {
		running *config.Audit
		loaded  string
		want    config.Level
	}{
		{&config.Audit{Log: true}, "warn", config.LevelInfo}, {&config.Audit{Log: true}, "", config.LevelInfo}, {&config.Audit{Log: true}, "debug", config.LevelDebug},
		{&config.Audit{}, "warn", config.LevelWarn}, {nil, "warn", config.LevelWarn},
	} {
		loaded := &config.Config{Log: config.Log{Level: config.Level(test.loaded)}}
		running := &config.Config{Serve: &serve.Options{}, Audit: test.running}
		if got := withRunning(loaded, running).Log.Level; got != test.want {
			t.Errorf("%+v, then the level %q: %q, want %q", test.running, test.loaded, got, test.want)
		}
	}
}

// Each key of [serve] is read at the start, or withRunning takes it from a changed
// configuration; the reference lists the former.
func TestKeysAtStart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	later := []string{"token", "clients", "profiles", "rules", "budgets", "oidc", "open", "hosts", "origins", "rate", "burst", "parallel",
		"resource_metadata", "console", "trace_url"}
	var fixed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `serve\\.([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(later, row[1]) {
			fixed = append(fixed, row[1])
		}
	}
	slices.Sort(fixed)
	var listed []string
	for _, key := range atStart {
		if name, ok := strings.CutPrefix(key, "serve."); ok {
			listed = append(listed, name)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(fixed, listed) {
		t.Errorf("of [serve], the reference has the keys %v, and at the start are read %v", fixed, listed)
	}
	_, section, _ := strings.Cut(string(text), "keys read only at the start |")
	section, _, _ = strings.Cut(section, "\n\n")
	for _, key := range atStart {
		table, name, found := strings.Cut(key, ".")
		if !found {
			table, name = "others", table
		}
		if !regexp.MustCompile("(?m)^\\| `?\\[?" + table + "\\]?`? \\|.*`" + name + "`").MatchString(section) {
			t.Errorf("the reference does not say that %s is read only at the start", key)
		}
	}
	for key, want := range map[string]bool{"serve.http": true, "serve.http_": false, "serve.grpc_tls.key": true, "serve.clients": false, "history.path": true} {
		if needsRestart(key) != want {
			t.Errorf("%s needs a restart: %v", key, !want)
		}
	}
}
