// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Who may reach an address is asked where the file names it and where somebody
// else does.
func TestAddressesThatNeedATokenAreKnown(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.1.2.3:80", "[::1]:80", "localhost:80", "LocalHost:80"} {
		if _, err := parse("serve = {http = '"+address+"'}", nil); err != nil {
			t.Error(err)
		}
	}
	exposed := []string{":80", "0.0.0.0:80", "[::]:80", "10.1.2.3:80", "localhost.example:80", "[::ffff:10.0.0.1]:80"}
	for _, address := range exposed {
		for _, key := range []string{"http", "grpc"} {
			if _, err := parse("serve = {"+key+" = '"+address+"'}", nil); err == nil || !strings.Contains(err.Error(), "serve."+key) {
				t.Errorf("%s is open to everybody over %s: %v", address, key, err)
			}
		}
		for _, allowed := range []string{"open = true", "token = '0123456789abcdef'", "clients = [{token = '0123456789abcdef'}]"} {
			if _, err := parse("serve = {http = '"+address+"', "+allowed+"}", nil); err != nil {
				t.Errorf("%s: %v", allowed, err)
			}
		}
	}
	if err := new(serve.Options).MayListen("80"); err == nil {
		t.Error("a port is taken for an address")
	}
}

// What the file says of serving is what the server is told.
func TestServerOptions(t *testing.T) {
	const text = `
[model]
name = "m"
base_url = "http://127.0.0.1:1/v1"
[trusted]
user = "root"
[serve]
name = "n"
title = "t"
instructions = "i"
own_names = true
converse = true
page_size = 2
parallel = 3
max_body = "1KiB"
shutdown_timeout = "4s"
`
	const overHTTP = text + `
http = "127.0.0.1:0"
hosts = ["tools.example", "*"]
origins = ["https://app.example", "*"]
rate = 5.5
burst = 6
max_bodies = "1MiB"
max_connections = 7
max_connections_per_address = 8
stateless = true
clients = [{token = "ada-0123456789abcdef", name = "a", trusted = {user = "ada"}}]
[serve.resource_metadata]
resource = "https://tools.example/mcp"
authorization_servers = ["https://login.example"]
scopes = ["s"]
`
	want := mcpserver.Options{
		AccessLog: true,
		Name:      "n", Title: "t", Instructions: "i", OwnNames: true, PageSize: 2, Parallel: 3, MaxBody: 1024, ShutdownTimeout: 4 * time.Second,
		MaxBodies: 1 << 20, MaxConnections: 7, MaxConnectionsPerAddress: 8,
		Hosts: []string{"tools.example", "*"}, Origins: []string{"https://app.example", "*"}, Rate: 5.5, Burst: 6, Stateless: true,
		Tokens: []mcpserver.BearerToken{{Token: "ada-0123456789abcdef", Name: "a", Trusted: []invoker.Value{invoker.TrustedJSON("user", []byte(`"ada"`))}}},
		ResourceMetadata: &mcpserver.ResourceMetadata{
			Resource: "https://tools.example/mcp", AuthorizationServers: []string{"https://login.example"}, Scopes: []string{"s"},
		},
	}
	got := serverOptions(t, overHTTP)
	if len(got.Tools) != 1 || got.Tools[0].Definition().Name != "converse" {
		t.Errorf("the tools are %v", got.Tools)
	}
	if got.Profile == nil || got.Finds == nil {
		t.Error("there is no profile search")
	}
	got.Tools, got.Logger, got.Profile, got.Finds = nil, nil, nil, nil
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", *got, want)
	}
	got = serverOptions(t, text)
	if len(got.Trusted) != 1 || got.Trusted[0].Name() != "user" {
		t.Errorf("over standard input and output the trusted values are %v", got.Trusted)
	}
	got = serverOptions(t, "")
	got.Logger, got.Profile, got.Finds = nil, nil, nil
	if !reflect.DeepEqual(*got, mcpserver.Options{}) {
		t.Errorf("of nothing: %+v", *got)
	}
	got = serverOptions(t, "serve = {http = '127.0.0.1:0', token = '0123456789abcdef'}")
	if got.Token != "0123456789abcdef" {
		t.Errorf("the token is %q", got.Token)
	}
	if got = serverOptions(t, "serve = {http = '127.0.0.1:0', access_log = false}"); got.AccessLog {
		t.Error("the access log cannot be turned off")
	}
}

// Over gRPC the clients are the same, and [trusted] is of none of them.
func TestServerOptionsOverGRPC(t *testing.T) {
	c, err := parse(`
trusted = {user = "root"}
[audit]
file = "`+filepath.Join(t.TempDir(), "trail.jsonl")+`"
[serve]
grpc = "127.0.0.1:0"
own_names = true
parallel = 3
rate = 5.5
burst = 6
max_body = "1KiB"
shutdown_timeout = "4s"
clients = [{token = "ada-0123456789abcdef", name = "a", trusted = {user = "ada"}}]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(context.Background())
	got := *parts.ServeGRPC
	got.Logger = nil
	if want := (grpctool.ServerOptions{
		AccessLog: true, OwnNames: true, Parallel: 3, Rate: 5.5, Burst: 6, MaxMessage: 1024, ShutdownTimeout: 4 * time.Second, Audit: parts.Audit,
		Tokens: []grpctool.BearerToken{{Token: "ada-0123456789abcdef", Name: "a", Trusted: []invoker.Value{invoker.TrustedJSON("user", []byte(`"ada"`))}}},
	}); !reflect.DeepEqual(got, want) || parts.Audit == nil {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if parts.Serve.Trusted != nil {
		t.Errorf("the trusted values of a stream of MCP are %v", parts.Serve.Trusted)
	}
}

func serverOptions(t *testing.T, text string) *mcpserver.Options {
	t.Helper()
	c, err := parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parts.Close(context.Background()) })
	return parts.Serve
}

func TestServingThatCannotBeAssembled(t *testing.T) {
	for want, s := range map[string]*serve.Options{
		"serve.converse: conversations need a model": {Converse: true},
		"serve.clients[0].token: missing":            {Clients: []serve.Client{{}}},
		"serve.clients[0].trusted.user: the value is empty": {Clients: []serve.Client{{
			Token: values.Hidden("x"), Trusted: map[string]values.Trusted{"user": {}},
		}}},
	} {
		if _, err := config.Assemble(&config.Config{Serve: s}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestToolsForResourcesAreInTheRoster(t *testing.T) {
	for text, want := range map[string]bool{"tools.resources = true": true, "tools.resources = false": false, "": false} {
		c, err := parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := parts.Roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"resources__list_resources", "resources__read_resource"} {
			if _, ok := catalog.Find(name); ok != want {
				t.Errorf("%s: %s is there: %v", text, name, ok)
			}
		}
		if err := parts.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// Tokens of clients, and what is secret of them, are secrets of the
// configuration like any other.
func TestTokensOfClientsAreSecrets(t *testing.T) {
	for text, secrets := range map[string][]string{
		"serve = {http = '127.0.0.1:0', token = 'single-0123456789'}": {"single-0123456789"},
		`
[trusted]
a = {value = "trusted-1", secret = true}
b = {value = '{"key": ["trusted-2"]}', json = true, secret = true}
c = "env:DATABASE_TOKEN"
[serve]
http = "127.0.0.1:0"
[[serve.clients]]
token = "first-0123456789"
trusted = {a = {value = "trusted-3", secret = true}, b = "env:WEATHER_API_KEY"}
[[serve.clients]]
token = "second-0123456789"
`: {"first-0123456789", "second-0123456789", "trusted-1", "trusted-2", "trusted-3", "database-5553", "weather-5552"},
	} {
		c, err := parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := config.Assemble(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if shown := parts.Redact("x" + secret + "y"); shown != "x[secret]y" {
				t.Errorf("%s is shown as %s", secret, shown)
			}
		}
		if err := parts.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
