// SPDX-License-Identifier: Apache-2.0

package approving_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/command/approving"
)

// Another environment, other headers and other roots are another server; the same ones in
// another order are not.
func TestTheAddressOfAServer(t *testing.T) {
	headers := func(pairs ...string) map[string]values.Value {
		all := map[string]values.Value{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = values.Plain(pairs[i+1])
		}
		return all
	}
	words := []values.Value{values.Plain("server"), values.Plain("-x")}
	seen := map[string]int{}
	for i, server := range []*config.Server{
		{Transport: config.Stdio, Command: words},
		{Transport: config.Stdio, Command: words[:1]},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1", "B", "2")},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1", "B", "3")},
		{Transport: config.Stdio, Command: words, Environment: headers("A", "1B2")},
		{Transport: config.Stdio, Command: words, Roots: []config.Root{{Path: values.Plain("/root-a")}}},
		{Transport: config.Stdio, Command: words, Roots: []config.Root{{Path: values.Plain("/root-b")}}},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/")},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/"), Headers: headers("X-User", "ann")},
		{Transport: config.HTTP, URL: values.Plain("https://a.test/"), Headers: headers("X-User", "bob")},
	} {
		of := approving.Servers(&config.Config{MCP: map[string]*config.Server{"s": server}})
		address := of("s").Address
		if before, there := seen[address]; there {
			t.Errorf("the servers %d and %d have the same address", before, i)
		}
		seen[address] = i
		for range 20 {
			if of("s").Address != address {
				t.Fatalf("server %d has several addresses", i)
			}
		}
		if label := of("s").Label; strings.Contains(label, "ann") || strings.Contains(label, "/root") && server.Transport == config.Stdio {
			t.Errorf("the label is %q", label)
		}
	}
}

// So is the address of a gRPC server, whose roots and TLS can differ too.
func TestTheAddressOfAGRPCServer(t *testing.T) {
	at := values.Plain("tools.test:443")
	seen := map[string]int{}
	for i, server := range []*config.GRPCServer{
		{Address: at},
		{Address: at, Token: values.Plain("a")},
		{Address: at, MCP: true},
		{Address: at, MCP: true, Roots: []config.Root{{Path: values.Plain("/root-a")}}},
		{Address: at, MCP: true, Roots: []config.Root{{Path: values.Plain("/root-b")}}},
		{Address: at, Plaintext: true},
		{Address: at, TLS: config.TLS{CA: values.Plain("/ca-a.pem")}},
		{Address: at, TLS: config.TLS{CA: values.Plain("/ca-b.pem")}},
		{Address: at, TLS: config.TLS{Certificate: values.Plain("/a.pem"), Key: values.Plain("/a.key")}},
		{Address: at, TLS: config.TLS{Certificate: values.Plain("/b.pem"), Key: values.Plain("/b.key")}},
		{Address: at, Category: "a"},
		{Address: at, Caller: "a"},
	} {
		address := approving.Servers(&config.Config{GRPC: map[string]*config.GRPCServer{"s": server}})("s").Address
		if before, there := seen[address]; there {
			t.Errorf("the servers %d and %d have the same address", before, i)
		}
		seen[address] = i
	}
}

// Each field of a server is a part of its address, or is known not to matter: it changes neither
// which server a call reaches nor for whom.
func TestTheFieldsOfAnAddress(t *testing.T) {
	rights := []string{"Limits", "ClientRoots", "Sampling", "TrustedHeaders", "TrustedMetadata", "Protocol", "MaxMessage", "PingAfter", "PlaintextSecrets", "Supervision"}
	secrets := []string{"ClientSecret", "ClientKey", "RedirectURL", "Scopes", "SubjectToken", "SubjectType"}
	of := func(cfg *config.Config) string { return approving.Servers(cfg)("s").Address }
	mcp := func(transport config.Transport) func() (any, func() string) {
		return func() (any, func() string) {
			s := &config.Server{Transport: transport, OAuth: new(config.OAuth)}
			return s, func() string { return of(&config.Config{MCP: map[string]*config.Server{"s": s}}) }
		}
	}
	http := mcp(config.HTTP)
	for name, test := range map[string]struct {
		server func() (any, func() string)
		free   []string
	}{
		"http":  {http, slices.Concat(rights, []string{"Command", "Environment", "Directory"})},
		"stdio": {mcp(config.Stdio), slices.Concat(rights, []string{"OAuth", "URL", "Headers"})},
		"gRPC": {func() (any, func() string) {
			s := new(config.GRPCServer)
			return s, func() string { return of(&config.Config{GRPC: map[string]*config.GRPCServer{"s": s}}) }
		}, rights},
		"login": {func() (any, func() string) {
			s, address := http()
			s.(*config.Server).OAuth.Provider = new(config.IdentityProvider)
			return s.(*config.Server).OAuth, address
		}, secrets},
		"provider": {func() (any, func() string) {
			s, address := http()
			provider := new(config.IdentityProvider)
			s.(*config.Server).OAuth.Provider = provider
			return provider, address
		}, secrets},
	} {
		blank, _ := test.server()
		for i := range reflect.TypeOf(blank).Elem().NumField() {
			server, address := test.server()
			before, field := address(), reflect.TypeOf(server).Elem().Field(i)
			reflect.ValueOf(server).Elem().Field(i).Set(another(t, field.Type))
			if changes, want := address() != before, !slices.Contains(test.free, field.Name); changes != want {
				t.Errorf("%s: another %s gives another address: %t, want %t", name, field.Name, changes, want)
			}
		}
	}
}

// another returns a value of a type that is not its zero value.
func another(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	if of == reflect.TypeFor[values.Value]() {
		return reflect.ValueOf(values.Plain("other"))
	}
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("other")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v = reflect.Append(v, another(t, of.Elem()))
	case reflect.Map:
		v = reflect.MakeMap(of)
		v.SetMapIndex(another(t, of.Key()), another(t, of.Elem()))
	case reflect.Pointer:
		v = reflect.New(of.Elem())
		v.Elem().Set(another(t, of.Elem()))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() && of.Name() != "Supervision" && of.Name() != "ResourceLimits" {
				v.Field(i).Set(another(t, of.Field(i).Type))
			}
		}
	default:
		t.Fatalf("a field has the type %s, of which the test knows no value", of)
	}
	return v
}
